// SPDX-License-Identifier: Apache-2.0
// What the CUDA twins share. Launchers take a stream, launch, check the launch and return at once.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

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

// The bytes of a kernel's parameters, which lie one behind the other, each aligned as its type
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

// Four elements that are loaded and stored at once.
template <class T>
struct alignas(4 * sizeof(T)) Four {
  T at[4];
};

template <class T>
bool aligned4(const T* p) {
  return reinterpret_cast<std::uintptr_t>(p) % sizeof(Four<T>) == 0;
}

// out[i] = f(i, a[i], b[i]); `wide` says that all three are aligned for loads of four.
template <class T, class F>
__global__ void map_kernel(const T* a, const T* b, T* out, std::int64_t n, bool wide, F f) {
  std::int64_t done = 0;
  if (wide) {
    done = n / 4 * 4;
    for (std::int64_t q = first_index(); q < n / 4; q += index_stride()) {
      const Four<T> u = reinterpret_cast<const Four<T>*>(a)[q];
      const Four<T> v = reinterpret_cast<const Four<T>*>(b)[q];
      Four<T> result;
#pragma unroll
      for (int j = 0; j < 4; ++j) store(result.at[j], f(4 * q + j, load(u.at[j]), load(v.at[j])));
      reinterpret_cast<Four<T>*>(out)[q] = result;
    }
  }
  for (std::int64_t i = done + first_index(); i < n; i += index_stride())
    store(out[i], f(i, load(a[i]), load(b[i])));
}

template <class T, class F>
void launch_map(const char* op, const T* a, const T* b, T* out, std::int64_t n, F f,
                cudaStream_t stream) {
  const bool wide = aligned4(a) && aligned4(b) && aligned4(out);
  launch(op, map_kernel<T, F>, blocks_for(wide ? n / 4 : n), stream, a, b, out, n, wide, f);
}

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
