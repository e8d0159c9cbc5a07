// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/layer_table.cuh"
#include "cuda_kernels/weight_range_implementations.h"

namespace zsq::cuda_kernels {
namespace {

// Unsigned integers that order like the floats, so that an integer atomic finds a float extreme.
__device__ std::uint32_t key_of(float v) {
  const std::uint32_t bits = __float_as_uint(v);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
__device__ float float_of(std::uint32_t key) {
  return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}
// Both decode to NaN and lie beyond every number, so one NaN decides its row.
constexpr std::uint32_t kNanBelow = 0, kNanAbove = 0xffffffffu;

__global__ void start_kernel(std::uint32_t* lo, std::uint32_t* hi, std::int64_t rows) {
  for (std::int64_t r = first_index(); r < rows; r += index_stride()) {
    lo[r] = 0xffffffffu;
    hi[r] = 0;
  }
}

// Block (x, y) takes a share of each row in x, x + gridDim.x, ...
__global__ void extremes_kernel(const float* x, std::int64_t rows, std::int64_t columns,
                                std::uint32_t* lo, std::uint32_t* hi) {
  __shared__ std::uint32_t block_lo, block_hi;
  for (std::int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    if (threadIdx.x == 0) {
      block_lo = 0xffffffffu;
      block_hi = 0;
    }
    __syncthreads();
    std::uint32_t own_lo = 0xffffffffu, own_hi = 0;
    const std::int64_t stride = static_cast<std::int64_t>(gridDim.y) * kThreads;
    for (std::int64_t i = blockIdx.y * kThreads + threadIdx.x; i < columns; i += stride) {
      const float v = x[r * columns + i];
      own_lo = min(own_lo, v == v ? key_of(v) : kNanBelow);
      own_hi = max(own_hi, v == v ? key_of(v) : kNanAbove);
    }
    atomicMin(&block_lo, own_lo);
    atomicMax(&block_hi, own_hi);
    __syncthreads();
    if (threadIdx.x == 0) {
      atomicMin(lo + r, block_lo);
      atomicMax(hi + r, block_hi);
    }
    __syncthreads();
  }
}

__global__ void finish_kernel(std::uint32_t* lo, std::uint32_t* hi, std::int64_t rows) {
  for (std::int64_t r = first_index(); r < rows; r += index_stride()) {
    lo[r] = __float_as_uint(float_of(lo[r]));
    hi[r] = __float_as_uint(float_of(hi[r]));
  }
}

__global__ void grid_kernel(const float* lo, const float* hi, std::int64_t n, CodeRange range,
                            bool symmetric, float* scale, float* zero_point) {
  for (std::int64_t i = first_index(); i < n; i += index_stride()) {
    const ScaleZero grid = grid_of_range(lo[i], hi[i], range, symmetric);
    scale[i] = grid.scale;
    zero_point[i] = grid.zero_point;
  }
}

// Of a layer's rows each piece of kPieceColumns is a warp's.
constexpr std::int64_t kPieceColumns = 4096, kWarps = kThreads / 32;
__host__ __device__ std::int64_t pieces_per_row(const RowsView& layer) {
  return (layer.columns + kPieceColumns - 1) / kPieceColumns;
}

__global__ void row_extremes_kernel(const __grid_constant__ LayerTable<RowsView> table,
                                    std::uint32_t* lo, std::uint32_t* hi) {
  const Chunk chunk = own_chunk(table);
  const RowsView& layer = table.layers[chunk.layer];
  const std::int64_t pieces = pieces_per_row(layer);
  const std::int64_t piece = chunk.index * kWarps + threadIdx.x / 32;
  if (piece >= layer.rows * pieces) return;
  const std::int64_t row = piece / pieces, begin = piece % pieces * kPieceColumns;
  const std::int64_t end =
      begin + kPieceColumns < layer.columns ? begin + kPieceColumns : layer.columns;
  std::uint32_t own_lo = 0xffffffffu, own_hi = 0;
  for (std::int64_t i = begin + threadIdx.x % 32; i < end; i += 32) {
    const float v = layer.x[row * layer.columns + i];
    own_lo = min(own_lo, v == v ? key_of(v) : kNanBelow);
    own_hi = max(own_hi, v == v ? key_of(v) : kNanAbove);
  }
  for (int half = 16; half > 0; half /= 2) {
    own_lo = min(own_lo, __shfl_down_sync(0xffffffffu, own_lo, half));
    own_hi = max(own_hi, __shfl_down_sync(0xffffffffu, own_hi, half));
  }
  if (threadIdx.x % 32 != 0) return;
  atomicMin(lo + layer.first + row, own_lo);
  atomicMax(hi + layer.first + row, own_hi);
}

// In place: the keys of a row's extremes become its grid.
__global__ void row_grids_kernel(const __grid_constant__ LayerTable<RowsView> table,
                                 std::uint32_t* lo, std::uint32_t* hi) {
  const Chunk chunk = own_chunk(table);
  const RowsView& layer = table.layers[chunk.layer];
  const std::int64_t row = chunk.index * kThreads + threadIdx.x;
  if (row >= layer.rows) return;
  std::uint32_t &own_lo = lo[layer.first + row], &own_hi = hi[layer.first + row];
  const ScaleZero grid =
      grid_of_range(float_of(own_lo), float_of(own_hi), layer.range, layer.symmetric);
  own_lo = __float_as_uint(grid.scale);
  own_hi = __float_as_uint(grid.zero_point);
}

}  // namespace

void row_min_max_cuda(const float* x, std::int64_t rows, std::int64_t columns, float* lo, float* hi,
                      cudaStream_t stream) {
  auto* lo_keys = reinterpret_cast<std::uint32_t*>(lo);
  auto* hi_keys = reinterpret_cast<std::uint32_t*>(hi);
  // Few rows are split over several blocks each, so that the device is busy either way.
  const auto row_blocks = static_cast<unsigned>(rows < kMaxBlocks ? rows : kMaxBlocks);
  const std::int64_t share = kMaxBlocks / row_blocks;
  const std::int64_t useful = (columns + 8 * kThreads - 1) / (8 * kThreads);
  const auto shares = static_cast<unsigned>(share < useful ? share : useful);
  constexpr const char* op = "channel_min_max";
  launch(op, start_kernel, blocks_for(rows), stream, lo_keys, hi_keys, rows);
  launch(op, extremes_kernel, dim3(row_blocks, shares), stream, x, rows, columns, lo_keys, hi_keys);
  launch(op, finish_kernel, blocks_for(rows), stream, lo_keys, hi_keys, rows);
}

void grid_from_range_cuda(const float* lo, const float* hi, std::int64_t n, CodeRange range,
                          bool symmetric, float* scale, float* zero_point, cudaStream_t stream) {
  launch("grid_from_range", grid_kernel, blocks_for(n), stream, lo, hi, n, range, symmetric, scale,
         zero_point);
}

void row_grids_cuda(const std::vector<RowsView>& layers, std::int64_t all_rows, float* scale,
                    float* zero_point, cudaStream_t stream) {
  constexpr const char* op = "layer_grids";
  auto* lo = reinterpret_cast<std::uint32_t*>(scale);
  auto* hi = reinterpret_cast<std::uint32_t*>(zero_point);
  launch(op, start_kernel, blocks_for(all_rows), stream, lo, hi, all_rows);
  const auto warps = [](const RowsView& layer) {
    return (layer.rows * pieces_per_row(layer) + kWarps - 1) / kWarps;
  };
  for_each_table(layers, warps, [&](const LayerTable<RowsView>& table, int, unsigned blocks) {
    launch(op, row_extremes_kernel, blocks, stream, table, lo, hi);
  });
  const auto rows = [](const RowsView& layer) { return (layer.rows + kThreads - 1) / kThreads; };
  for_each_table(layers, rows, [&](const LayerTable<RowsView>& table, int, unsigned blocks) {
    launch(op, row_grids_kernel, blocks, stream, table, lo, hi);
  });
}

}  // namespace zsq::cuda_kernels
