// SPDX-License-Identifier: Apache-2.0
// How the CPU twins run. Inner loops are functions marked ZSQ_VECTORIZED, compiled once per
// instruction set and chosen when the program starts; they are handed whole runs of elements.
#pragma once
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdint>

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)
#define ZSQ_VECTORIZED __attribute__((target_clones("arch=x86-64-v4", "avx2", "default"), noinline))
#else
#define ZSQ_VECTORIZED
#endif

namespace zsq::cuda_kernels {

constexpr std::int64_t kGrain = 32768;  // elements that are worth a thread

// f(channel, begin, end) over all n elements in parallel, split at every multiple of `inner`;
// channel = (begin / inner) % channels.
template <class F>
void for_each_run(std::int64_t n, std::int64_t channels, std::int64_t inner, const F& f) {
  at::parallel_for(0, n, kGrain, [&](std::int64_t begin, std::int64_t end) {
    while (begin < end) {
      const std::int64_t row = begin / inner;
      const std::int64_t stop = std::min(end, (row + 1) * inner);
      f(row % channels, begin, stop);
      begin = stop;
    }
  });
}

}  // namespace zsq::cuda_kernels
