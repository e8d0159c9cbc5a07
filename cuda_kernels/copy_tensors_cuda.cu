// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/copy_tensors_implementations.h"
#include "cuda_kernels/layer_table.cuh"

namespace zsq::cuda_kernels {
namespace {

using Word = Vector<std::uint32_t, 4>;
constexpr std::int64_t kWord = sizeof(Word), kChunkWords = 8 * kThreads,
                       kChunk = kChunkWords * kWord;

// A block copies one chunk: words of 16 bytes, where both sides are aligned, and then bytes.
__global__ void copy_kernel(const __grid_constant__ LayerTable<BytesCopy> table, const bool* flag) {
  if (flag && !*flag) return;
  const Chunk chunk = own_chunk(table);
  const BytesCopy& copy = table.layers[chunk.layer];
  const std::int64_t begin = chunk.index * kChunk, left = copy.bytes - begin;
  const std::int64_t bytes = left < kChunk ? left : kChunk;
  const char* from = static_cast<const char*>(copy.from) + begin;
  char* to = static_cast<char*>(copy.to) + begin;
  const bool aligned =
      (reinterpret_cast<std::uintptr_t>(from) | reinterpret_cast<std::uintptr_t>(to)) % kWord == 0;
  const std::int64_t words = aligned ? bytes / kWord : 0;
  for (std::int64_t i = threadIdx.x; i < words; i += kThreads)
    reinterpret_cast<Word*>(to)[i] = reinterpret_cast<const Word*>(from)[i];
  for (std::int64_t i = words * kWord + threadIdx.x; i < bytes; i += kThreads) to[i] = from[i];
}

}  // namespace

void copy_bytes_cuda(const std::vector<BytesCopy>& copies, const bool* flag, cudaStream_t stream) {
  const auto chunks = [](const BytesCopy& copy) { return (copy.bytes + kChunk - 1) / kChunk; };
  for_each_table(copies, chunks, [&](const LayerTable<BytesCopy>& table, int, unsigned blocks) {
    launch("copy_tensors_", copy_kernel, blocks, stream, table, flag);
  });
}

}  // namespace zsq::cuda_kernels
