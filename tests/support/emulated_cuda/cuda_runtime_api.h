// SPDX-License-Identifier: Apache-2.0
// Stands in for the CUDA toolkit's header of this name, so that .cu files compile as plain C++ and
// their kernels run on the host, a fiber for each thread (grid.h). First on the include path.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tests/support/emulated_cuda/grid.h"

#define __host__
#define __device__
#define __global__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __shared__ static  // blocks run one after the other
#define __syncthreads() ::emulated_cuda::wait_for_block(__FILE__, __LINE__)
#define __shfl_down_sync(mask, value, delta) \
  ::emulated_cuda::shuffle_down(mask, value, delta, __FILE__, __LINE__)
#define threadIdx (::emulated_cuda::self.thread)
#define blockIdx (::emulated_cuda::self.block)
#define blockDim (::emulated_cuda::self.block_size)
#define gridDim (::emulated_cuda::self.grid_size)

using dim3 = emulated_cuda::Dim3;
struct CUstream_st;
using cudaStream_t = CUstream_st*;

enum cudaError_t { cudaSuccess = 0, cudaErrorMemoryAllocation = 2, cudaErrorUnknown = 999 };
inline cudaError_t cudaGetLastError() {
  const int error = emulated_cuda::last_error;
  emulated_cuda::last_error = cudaSuccess;
  return static_cast<cudaError_t>(error);
}
inline const char* cudaGetErrorString(cudaError_t) { return "emulated error"; }
inline cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}

struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
template <class Word>
void __stwb(Word* at, Word word) {
  *at = word;
}

inline std::uint32_t __float_as_uint(float v) {
  std::uint32_t bits;
  std::memcpy(&bits, &v, sizeof bits);
  return bits;
}
inline float __uint_as_float(std::uint32_t bits) {
  float v;
  std::memcpy(&v, &bits, sizeof v);
  return v;
}

inline unsigned min(unsigned a, unsigned b) { return b < a ? b : a; }
inline unsigned max(unsigned a, unsigned b) { return a < b ? b : a; }

// Relaxed, as on the device: they order nothing around them.
template <class T>
T atomicAdd(T* at, T v) {
  return __atomic_fetch_add(at, v, __ATOMIC_RELAXED);
}
inline unsigned atomicMin(unsigned* at, unsigned v) {
  unsigned old = __atomic_load_n(at, __ATOMIC_RELAXED);
  while (v < old &&
         !__atomic_compare_exchange_n(at, &old, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return old;
}
inline unsigned atomicMax(unsigned* at, unsigned v) {
  unsigned old = __atomic_load_n(at, __ATOMIC_RELAXED);
  while (v > old &&
         !__atomic_compare_exchange_n(at, &old, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return old;
}
