// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/fake_quant_implementations.h"
#include "cuda_kernels/layer_table.cuh"

namespace zsq::cuda_kernels {
namespace {

struct Value {
  GridView grid;
  ChannelOf channel;
  __device__ float operator()(std::int64_t i, float x, float) const {
    return fake_quant_value(x, grid.at(channel(i)));
  }
};

struct Backward {
  GridView grid;
  ChannelOf channel;
  __device__ float operator()(std::int64_t i, float x, float dy) const {
    return grid.at(channel(i)).contains(x) ? dy : 0.0f;
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

__global__ void layers_kernel(const __grid_constant__ LayerTable<LayerMap> table) {
  const Chunk chunk = own_chunk(table);
  const LayerMap& layer = table.layers[chunk.layer];
  const ChannelOf channel(layer.n, layer.grid.channels, layer.grid.inner);
  const Value value{layer.grid, channel};
  const Backward backward{layer.grid, channel};
  for_own_elements(chunk.index, layer.n, [&](std::int64_t i) {
    layer.y[i] = layer.dy ? backward(i, layer.x[i], layer.dy[i]) : value(i, layer.x[i], 0);
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

}  // namespace

template <class T>
void fake_quant_cuda(const T* x, T* y, std::int64_t n, const GridView& grid, cudaStream_t stream) {
  launch_map("fake_quant", x, x, y, n, Value{grid, {n, grid.channels, grid.inner}}, stream);
}

template <class T>
void fake_quant_backward_cuda(const T* x, const T* dy, T* dx, std::int64_t n, const GridView& grid,
                              cudaStream_t stream) {
  launch_map("fake_quant backward", x, dy, dx, n, Backward{grid, {n, grid.channels, grid.inner}},
             stream);
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
