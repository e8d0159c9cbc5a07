// SPDX-License-Identifier: Apache-2.0
// What the CUDA twins share. Launchers take a stream, launch, check the launch and return at once.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "core/error.h"
#include "cuda_kernels/element.h"

namespace zsq::cuda_kernels {

inline void check_launch(const char* op) {
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess)
    throw Error(error == cudaErrorMemoryAllocation ? ErrorCode::out_of_memory : ErrorCode::internal,
                std::string(op) + ": CUDA launch failed: " + cudaGetErrorString(error));
}

// The limits of every GPU.
inline void check_blocks(const char* op, dim3 blocks) {
  const auto within = [](unsigned n, unsigned most) { return n > 0 && n <= most; };
  if (within(blocks.x, 0x7fffffff) && within(blocks.y, 65535) && within(blocks.z, 65535)) return;
  throw Error(ErrorCode::internal,
              std::string(op) + ": a grid of " + std::to_string(blocks.x) + " x " +
                  std::to_string(blocks.y) + " x " + std::to_string(blocks.z) +
                  " blocks, expected 1 to 2^31 - 1 in x and 1 to 65535 in y and z");
}

constexpr int kThreads = 256;              // of every block
constexpr std::int64_t kMaxBlocks = 4096;  // beyond that each thread takes several elements

inline int blocks_for(std::int64_t items) {
  const std::int64_t blocks = (items + kThreads - 1) / kThreads;
  return static_cast<int>(blocks < 1 ? 1 : blocks < kMaxBlocks ? blocks : kMaxBlocks);
}

// The bytes of a kernel's parameters, which lie one after the other, each aligned as its type
// asks.
template <class... Parameters>
constexpr std::size_t parameter_bytes() {
  std::size_t end = 0;
  ((end = (end + alignof(Parameters) - 1) / alignof(Parameters) * alignof(Parameters) +
          sizeof(Parameters)),
   ...);
  return end;
}
constexpr std::size_t kMaxParameterBytes = 4096;  // what every generation of GPU takes

// kernel(args...) in blocks of kThreads threads; returns when it is launched. Throws
// Error(out_of_memory or internal) that names `op` where the grid is none or the launch fails. In a
// test build on the host (tests/support/emulated_cuda/) the same threads are fibers.
template <class... Parameters, class... Args>
void launch(const char* op, void (*kernel)(Parameters...), dim3 blocks, cudaStream_t stream,
            const Args&... args) {
  static_assert(parameter_bytes<Parameters...>() <= kMaxParameterBytes);
  check_blocks(op, blocks);
#ifdef ZSQ_EMULATED_CUDA
  emulated_cuda::launch(op, blocks, kThreads, stream, [=] { kernel(args...); });
#else
  // clang-format off
  kernel<<<blocks, kThreads, 0, stream>>>(args...);
  // clang-format on
#endif
  check_launch(op);
}

// The grid-stride loop: first index and stride of this thread.
__device__ __forceinline__ std::int64_t first_index() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ std::int64_t index_stride() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

// (i / inner) % channels, in 32 bits where the whole tensor allows it.
struct ChannelOf {
  std::int64_t channels, inner;
  bool narrow;

  __host__ __device__ ChannelOf(std::int64_t n, std::int64_t channels, std::int64_t inner)
      : channels(channels), inner(inner), narrow(n <= 0xffffffffLL) {}
  __device__ __forceinline__ std::int64_t operator()(std::int64_t i) const {
    if (channels == 1) return 0;
    if (narrow)
      return static_cast<std::uint32_t>(i) / static_cast<std::uint32_t>(inner) %
             static_cast<std::uint32_t>(channels);
    return i / inner % channels;
  }
};

// Elements that are loaded and stored at once; a GPU moves 16 bytes per thread at most.
template <class T, int kLength>
struct alignas(kLength * sizeof(T)) Vector {
  T at[kLength];
};
template <class T>
constexpr int kVectorLength = 16 / sizeof(T);

// All of the vector by one instruction, which the compiler moves nothing across.
template <class T, int kLength>
__device__ __forceinline__ void store_vector(T* at, const Vector<T, kLength>& v) {
  if constexpr (sizeof v >= 8) {
    std::conditional_t<sizeof v == 16, uint4, uint2> word;
    std::memcpy(&word, &v, sizeof v);
    __stwb(reinterpret_cast<decltype(word)*>(at), word);
  } else {
    *reinterpret_cast<Vector<T, kLength>*>(at) = v;
  }
}

// Tensors of one memory order that a kernel reads and writes at the same places. Null where there
// is none: zeros are read, nothing is written.
template <class T, int kIn, int kOut>
struct Streams {
  const T* in[kIn];
  T* out[kOut];

  // Whether every tensor begins at a multiple of `bytes`.
  __host__ __device__ bool aligned_to(std::size_t bytes) const {
    std::uintptr_t bits = 0;
    for (const T* p : in) bits |= reinterpret_cast<std::uintptr_t>(p);
    for (const T* p : out) bits |= reinterpret_cast<std::uintptr_t>(p);
    return bits % bytes == 0;
  }
  // values[j] are those of element i + j, one of each tensor.
  template <int kLength>
  __device__ __forceinline__ void read(std::int64_t i, float (&values)[kLength][kIn]) const {
#pragma unroll
    for (int k = 0; k < kIn; ++k) {
      Vector<T, kLength> v{};
      if (in[k]) v = *reinterpret_cast<const Vector<T, kLength>*>(in[k] + i);
#pragma unroll
      for (int j = 0; j < kLength; ++j) values[j][k] = load(v.at[j]);
    }
  }
  // The compiler writes most vectors at once; where it would write each element by itself, which
  // touches as many sectors of memory as the whole vector, kAtOnce does not let it
  // (scripts/count_instructions.py shows which).
  template <bool kAtOnce = false, int kLength>
  __device__ __forceinline__ void write(std::int64_t i,
                                        const float (&values)[kLength][kOut]) const {
#pragma unroll
    for (int k = 0; k < kOut; ++k) {
      if (!out[k]) continue;
      Vector<T, kLength> v;
#pragma unroll
      for (int j = 0; j < kLength; ++j) store(v.at[j], values[j][k]);
      if constexpr (kAtOnce)
        store_vector(out[k] + i, v);
      else
        *reinterpret_cast<Vector<T, kLength>*>(out[k] + i) = v;
    }
  }
};

struct Sum {
  __device__ double operator()(double a, double b) const { return a + b; }
};
struct Max {
  __device__ double operator()(double a, double b) const { return a > b ? a : b; }
};

// The values of all kThreads threads of the block combined as a fixed tree; every thread gets the
// result, and the block may call it again at once.
template <class Op>
__device__ double block_reduce(double value, Op op) {
  __shared__ double shared[kThreads];
  shared[threadIdx.x] = value;
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half)
      shared[threadIdx.x] = op(shared[threadIdx.x], shared[threadIdx.x + half]);
  }
  __syncthreads();
  const double result = shared[0];
  __syncthreads();
  return result;
}

}  // namespace zsq::cuda_kernels
