// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/fake_quant_implementations.h"
#include "cuda_kernels/layer_table.cuh"
#include "cuda_kernels/map.cuh"

namespace zsq::cuda_kernels {
namespace {

struct Value {
  GridView grid;
  using Channel = UniformGrid;
  __device__ Channel channel(std::int64_t c) const { return grid.at(c); }
  __device__ void operator()(const Channel& own, const float* in, float* out) const {
    out[0] = fake_quant_value(in[0], own);
  }
};

struct Backward {
  GridView grid;
  using Channel = UniformGrid;
  __device__ Channel channel(std::int64_t c) const { return grid.at(c); }
  __device__ void operator()(const Channel& own, const float* in, float* out) const {
    out[0] = own.contains(in[0]) ? in[1] : 0.0f;
  }
};

__global__ void quantize_kernel(const float* x, std::int32_t* codes, std::int64_t n, GridView grid,
                                ChannelOf channel, std::int32_t* found_nan) {
  for (std::int64_t i = first_index(); i < n; i += index_stride()) {
    const float code = grid.at(channel(i)).encode(x[i]);
    if (code != code) *found_nan = 1;
    codes[i] = static_cast<std::int32_t>(code == code ? code : grid.range.min);
  }
}

// Both directions: without dy the value, else the gradient.
struct ValueOrGradient {
  bool gradient;
  __device__ void operator()(const UniformGrid& own, const float* in, float* out) const {
    if (gradient)
      out[0] = own.contains(in[0]) ? in[1] : 0.0f;
    else
      out[0] = fake_quant_value(in[0], own);
  }
};

__global__ void layers_kernel(const __grid_constant__ LayerTable<LayerMap> table) {
  const Chunk chunk = own_chunk(table);
  const LayerMap& layer = table.layers[chunk.layer];
  const GridView& grid = layer.grid;
  const ChannelOf channel(layer.n, grid.channels, grid.inner);
  const Streams<float, 2, 1> streams{{layer.x, layer.dy}, {layer.y}};
  const ValueOrGradient f{layer.dy != nullptr};
  for_own_pieces(chunk.index, layer.n, streams, grid, [&](std::int64_t i, auto length) {
    const UniformGrid own[1] = {grid.at(channel(i))};
    map_at<decltype(length)::value, true>(streams, i, own, f);
  });
}

__global__ void changed_kernel(const __grid_constant__ LayerTable<CodesView> table,
                               std::int64_t* counts) {
  __shared__ unsigned block_changed;
  if (threadIdx.x == 0) block_changed = 0;
  __syncthreads();
  const Chunk chunk = own_chunk(table);
  const CodesView& layer = table.layers[chunk.layer];
  const GridView &a = layer.grid_before, &b = layer.grid_after;
  const ChannelOf channel(layer.n, a.channels, a.inner);
  unsigned changed = 0;
  for_own_elements(chunk.index, layer.n, [&](std::int64_t i) {
    const std::int64_t c = channel(i);
    changed += a.at(c).encode(layer.before[i]) != b.at(c).encode(layer.after[i]);
  });
  atomicAdd(&block_changed, changed);
  __syncthreads();
  if (threadIdx.x == 0 && block_changed)
    atomicAdd(reinterpret_cast<unsigned long long*>(counts + layer.index),
              static_cast<unsigned long long>(block_changed));
}

ChannelLayout layout_of(std::int64_t n, const GridView& grid) {
  return {n / (grid.channels * grid.inner), grid.channels, grid.inner};
}

}  // namespace

template <class T>
void fake_quant_cuda(const T* x, T* y, std::int64_t n, const GridView& grid, cudaStream_t stream) {
  launch_map("fake_quant", Streams<T, 1, 1>{{x}, {y}}, layout_of(n, grid), Value{grid}, stream);
}

template <class T>
void fake_quant_backward_cuda(const T* x, const T* dy, T* dx, std::int64_t n, const GridView& grid,
                              cudaStream_t stream) {
  launch_map("fake_quant backward", Streams<T, 2, 1>{{x, dy}, {dx}}, layout_of(n, grid),
             Backward{grid}, stream);
}

void fake_quant_layers_cuda(const std::vector<LayerMap>& layers, cudaStream_t stream) {
  for_each_table(
      layers, [](const LayerMap& layer) { return element_chunks(layer.n); },
      [&](const LayerTable<LayerMap>& table, int, unsigned blocks) {
        launch("fake_quant_layers", layers_kernel, blocks, stream, table);
      });
}

void changed_codes_cuda(const std::vector<CodesView>& layers, std::int64_t* counts,
                        cudaStream_t stream) {
  for_each_table(
      layers, [](const CodesView& layer) { return element_chunks(layer.n); },
      [&](const LayerTable<CodesView>& table, int, unsigned blocks) {
        launch("changed_codes", changed_kernel, blocks, stream, table, counts);
      });
}

void quantize_cuda(const float* x, std::int32_t* codes, std::int64_t n, const GridView& grid,
                   std::int32_t* found_nan, cudaStream_t stream) {
  launch("quantize", quantize_kernel, blocks_for(n), stream, x, codes, n, grid,
         ChannelOf(n, grid.channels, grid.inner), found_nan);
}

template void fake_quant_cuda(const float*, float*, std::int64_t, const GridView&, cudaStream_t);
template void fake_quant_backward_cuda(const float*, const float*, float*, std::int64_t,
                                       const GridView&, cudaStream_t);
template void fake_quant_cuda(const Bf16*, Bf16*, std::int64_t, const GridView&, cudaStream_t);
template void fake_quant_backward_cuda(const Bf16*, const Bf16*, Bf16*, std::int64_t,
                                       const GridView&, cudaStream_t);

}  // namespace zsq::cuda_kernels
