// SPDX-License-Identifier: Apache-2.0
// Sums per channel on the CPU. Partial sums cover fixed pieces of the tensor and are added in
// order, so the result does not depend on the number of threads.
#pragma once
#include <vector>

#include "cuda_kernels/channel_layout.h"
#include "cuda_kernels/cpu_loops.h"

namespace zsq::cuda_kernels {

constexpr int kSumLanes = 16;  // independent sums of a run, which is what lets it use vectors

// sums [kSums, C]. Calls, in parallel,
//   row(offset, n, c, sums)      for each run of n elements of one channel (inner > 1), or
//   pixels(offset, count, sums)  for blocks of `count` pixels of C elements (inner == 1),
// which add to sums[k * C + c], doubles that start at 0.
template <int kSums, class Row, class Pixels>
void channel_sums(ChannelLayout layout, double* sums, const Row& row, const Pixels& pixels) {
  const auto [outer, channels, inner] = layout;
  const bool by_pixel = inner == 1;
  const std::int64_t block = by_pixel ? std::max<std::int64_t>(1, kGrain / channels) : 1;
  const std::int64_t pieces = (outer + block - 1) / block;
  std::vector<double> partial(pieces * kSums * channels);
  const std::int64_t piece_size = block * channels * inner;
  at::parallel_for(0, pieces, std::max<std::int64_t>(1, kGrain / piece_size),
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t p = begin; p < end; ++p) {
                       double* own = partial.data() + p * kSums * channels;
                       const std::int64_t offset = p * piece_size;
                       if (by_pixel) {
                         pixels(offset, std::min(block, outer - p * block), own);
                         continue;
                       }
                       for (std::int64_t c = 0; c < channels; ++c)
                         row(offset + c * inner, inner, c, own);
                     }
                   });
  const std::int64_t n = kSums * channels;
  std::fill(sums, sums + n, 0.0);
  for (std::int64_t p = 0; p < pieces; ++p)
    for (std::int64_t i = 0; i < n; ++i) sums[i] += partial[p * n + i];
}

}  // namespace zsq::cuda_kernels
