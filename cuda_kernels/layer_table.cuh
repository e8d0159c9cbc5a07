// SPDX-License-Identifier: Apache-2.0
// One launch for many layers. A table of them is a parameter of the kernel, so nothing has to be
// copied to the device and a CUDA graph records it by value; what does not fit into one table takes
// a further launch. Each block takes one chunk of one layer.
#pragma once
#include <vector>

#include "cuda_kernels/cuda_common.cuh"

namespace zsq::cuda_kernels {

// Layer is trivially copyable; all parameters of a kernel together have 4 KB.
template <class Layer>
struct LayerTable {
  static constexpr int kLayers = 3600 / static_cast<int>(sizeof(Layer) + sizeof(std::int64_t));
  Layer layers[kLayers];
  std::int64_t first_chunk[kLayers + 1];  // of each layer; then their number
};

// The layer that this block works for, and which of its chunks.
struct Chunk {
  int layer;
  std::int64_t index;
};
template <class Layer>
__device__ Chunk own_chunk(const LayerTable<Layer>& table) {
  int layer = 0;
  while (table.first_chunk[layer + 1] <= blockIdx.x) ++layer;
  return {layer, blockIdx.x - table.first_chunk[layer]};
}

// launch(table, layers in it, blocks) as often as it takes; chunks(layer) >= 1.
template <class Layer, class Chunks, class Launch>
void for_each_table(const std::vector<Layer>& layers, const Chunks& chunks, const Launch& launch) {
  LayerTable<Layer> table = {};  // what no layer fills is no stale pointer
  table.first_chunk[0] = 0;
  int count = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    table.layers[count] = layers[i];
    table.first_chunk[count + 1] = table.first_chunk[count] + chunks(layers[i]);
    ++count;
    if (count < LayerTable<Layer>::kLayers && i + 1 < layers.size()) continue;
    launch(table, count, static_cast<unsigned>(table.first_chunk[count]));
    count = 0;
  }
}

// Elements in chunks of a fixed number.
constexpr std::int64_t kChunkElements = 4096;
inline std::int64_t element_chunks(std::int64_t n) {
  return (n + kChunkElements - 1) / kChunkElements;
}
// f(i) for this thread's elements of chunk `index` of n.
template <class F>
__device__ void for_own_elements(std::int64_t index, std::int64_t n, const F& f) {
  const std::int64_t begin = index * kChunkElements;
  const std::int64_t end = begin + kChunkElements < n ? begin + kChunkElements : n;
  for (std::int64_t i = begin + threadIdx.x; i < end; i += kThreads) f(i);
}

// f(i, Length<kLength>()) for this thread's pieces of the chunk, each of one channel of the grid:
// vectors where the tensors' alignment and the grid allow them, elements for what they leave and
// elsewhere.
template <int kLength>
struct Length {
  static constexpr int value = kLength;
};
template <class T, int kIn, int kOut, class Grid, class F>
__device__ void for_own_pieces(std::int64_t index, std::int64_t n,
                               const Streams<T, kIn, kOut>& streams, const Grid& grid, const F& f) {
  constexpr int kLength = kVectorLength<T>;
  const std::int64_t begin = index * kChunkElements;
  const std::int64_t end = begin + kChunkElements < n ? begin + kChunkElements : n;
  const bool wide = streams.aligned_to(16) && (grid.channels == 1 || grid.inner % kLength == 0);
  const std::int64_t rest = wide ? begin + (end - begin) / kLength * kLength : begin;
  for (std::int64_t i = begin + threadIdx.x * kLength; i < rest; i += kThreads * kLength)
    f(i, Length<kLength>());
  for (std::int64_t i = rest + threadIdx.x; i < end; i += kThreads) f(i, Length<1>());
}

}  // namespace zsq::cuda_kernels
