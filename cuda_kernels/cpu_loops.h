// SPDX-License-Identifier: Apache-2.0
// How the CPU implementations run. Inner loops are functions marked ZSQ_VECTORIZED, compiled once
// per instruction set and chosen when the program starts; they are handed whole runs of elements.
#pragma once
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)
#define ZSQ_VECTORIZED __attribute__((target_clones("arch=x86-64-v4", "avx2", "default"), noinline))
#else
#define ZSQ_VECTORIZED
#endif
// For what such functions are made of.
#define ZSQ_INLINED inline __attribute__((always_inline))
#define ZSQ_INLINED_LAMBDA __attribute__((always_inline))
#if defined(__GNUC__) && !defined(__clang__)
#define ZSQ_NO_ALIAS _Pragma("GCC ivdep")
#else
#define ZSQ_NO_ALIAS
#endif

namespace zsq::cuda_kernels {

constexpr std::int64_t kGrain = 32768;  // elements that are worth a thread

// f(channel, begin, end) over elements [begin, end), split at every multiple of `inner`; channel =
// (begin / inner) % channels.
template <class F>
void split_into_runs(std::int64_t begin, std::int64_t end, std::int64_t channels,
                     std::int64_t inner, const F& f) {
  while (begin < end) {
    const std::int64_t row = begin / inner;
    const std::int64_t stop = std::min(end, (row + 1) * inner);
    f(row % channels, begin, stop);
    begin = stop;
  }
}

// The same over all n elements in parallel.
template <class F>
void for_each_run(std::int64_t n, std::int64_t channels, std::int64_t inner, const F& f) {
  at::parallel_for(0, n, kGrain, [&](std::int64_t begin, std::int64_t end) {
    split_into_runs(begin, end, channels, inner, f);
  });
}

// Work on several layers as one parallel region. f(layer, begin, end): of layer i the items
// [begin, end) out of sizes[i] >= 0; layers ascend within a thread. `grain` items are worth one.
template <class F>
void share_layers(const std::vector<std::int64_t>& sizes, std::int64_t grain, const F& f) {
  const std::int64_t total = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  at::parallel_for(0, total, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::size_t i = 0; i < sizes.size() && end > 0; ++i) {
      if (begin < sizes[i]) f(i, std::max<std::int64_t>(begin, 0), std::min(end, sizes[i]));
      begin -= sizes[i];
      end -= sizes[i];
    }
  });
}

// Where rows must stay whole and threads have the same work, a row is of the thread that has its
// begin: f(row) for the rows of `columns` elements that begin in [begin, end).
template <class F>
void for_each_begun_row(std::int64_t begin, std::int64_t end, std::int64_t columns, const F& f) {
  for (std::int64_t row = (begin + columns - 1) / columns; row * columns < end; ++row) f(row);
}

// f(layer, begin, end) over the elements of layers that have `n` of them.
template <class Layer, class F>
void for_each_share(std::span<const Layer> layers, const F& f) {
  std::vector<std::int64_t> sizes;
  for (const Layer& layer : layers) sizes.push_back(layer.n);
  share_layers(sizes, kGrain, [&](std::size_t i, std::int64_t begin, std::int64_t end) {
    f(layers[i], begin, end);
  });
}

}  // namespace zsq::cuda_kernels
