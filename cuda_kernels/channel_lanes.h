// SPDX-License-Identifier: Apache-2.0
// How CPU implementations walk over a tensor whose channels have numbers of their own, in either
// memory format. The numbers are spread over a row of elements once, so that inner loops are plain
// loops over rows, whatever the number of channels.
#pragma once
#include <algorithm>
#include <array>
#include <vector>

#include "cuda_kernels/channel_layout.h"
#include "cuda_kernels/cpu_loops.h"

namespace zsq::cuda_kernels {

constexpr std::int64_t kRow = 256;       // elements, about
constexpr std::int64_t kFloatRows = 32;  // rows that are summed in float before double takes over

// Rows of `width` elements from `offset` on; element i of a row has the numbers params[k][i], and
// adds to sums[k * stride + i].
template <std::size_t kParams>
struct LaneRows {
  std::int64_t offset, rows, width, stride;
  std::array<const float*, kParams> params;
  float* sums;
};

// f(i, j, sums) for each element i, which has the numbers at j and adds to sums[kSums]. In the
// order of memory: several rows at once would save loads, but is not what the processor reads
// ahead. What f writes is nowhere that it reads.
template <int kSums, std::size_t kParams, class F>
ZSQ_INLINED void for_each_element(const LaneRows<kParams>& rows, const F& f) {
  for (std::int64_t row = 0; row < rows.rows; ++row) {
    const std::int64_t begin = rows.offset + row * rows.width;
    ZSQ_NO_ALIAS
    for (std::int64_t j = 0; j < rows.width; ++j) {
      float own[kSums + 1];
      for (int k = 0; k < kSums; ++k) own[k] = rows.sums[k * rows.stride + j];
      f(begin + j, j, own);
      for (int k = 0; k < kSums; ++k) rows.sums[k * rows.stride + j] = own[k];
    }
  }
}

ZSQ_VECTORIZED inline void flush_lanes(float* __restrict from, double* __restrict to,
                                       std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    to[i] += from[i];
    from[i] = 0;
  }
}

// partial [pieces, kinds, own] in order to sums [kinds, channels]; own: all channels, or one.
inline void add_pieces(const std::vector<double>& partial, std::int64_t pieces, int kinds,
                       std::int64_t channels, bool by_pixel, double* sums) {
  std::fill(sums, sums + kinds * channels, 0.0);
  const std::int64_t own = by_pixel ? channels : 1;
  for (std::int64_t p = 0; p < pieces; ++p)
    for (int k = 0; k < kinds; ++k)
      for (std::int64_t i = 0; i < own; ++i)
        sums[k * channels + (by_pixel ? i : p % channels)] +=
            partial[static_cast<std::size_t>((p * kinds + k) * own + i)];
}

// Calls f(LaneRows) in parallel for all of a dense tensor. params: [C] floats each, or null. sums
// [kSums, C], overwritten. Partial sums cover fixed pieces of the tensor and are added in order, so
// the result does not depend on the number of threads.
template <int kSums, std::size_t kParams, class F>
void for_each_lane(ChannelLayout layout, const std::array<const float*, kParams>& params,
                   double* sums, const F& f) {
  const auto [outer, channels, inner] = layout;
  const bool by_pixel = inner == 1;  // else a piece is of one channel
  const std::int64_t repeats = std::max<std::int64_t>(1, kRow / channels);
  const std::int64_t width = by_pixel ? channels * repeats : std::min(kRow, inner);
  const std::int64_t piece = by_pixel ? width * std::max<std::int64_t>(1, kGrain / width) : inner;
  const std::int64_t total = outer * channels * inner, pieces = (total + piece - 1) / piece;
  const std::int64_t own = by_pixel ? channels : 1;  // channels of a piece
  std::vector<double> partial(static_cast<std::size_t>(pieces * kSums * own));

  const auto spread = [&](std::vector<float>& row, std::int64_t first) {
    for (std::size_t k = 0; k < kParams; ++k) {
      if (!params[k]) continue;
      float* to = row.data() + static_cast<std::int64_t>(k) * width;
      for (std::int64_t i = 0; i < width; ++i) to[i] = params[k][first + i % own];
    }
  };
  std::vector<float> shared(by_pixel ? kParams * static_cast<std::size_t>(width) : 0);
  if (by_pixel) spread(shared, 0);

  at::parallel_for(
      0, pieces, std::max<std::int64_t>(1, kGrain / piece),
      [&, channels = channels](std::int64_t begin, std::int64_t end) {
        std::vector<float> one(by_pixel ? 0 : kParams * static_cast<std::size_t>(width));
        std::vector<float> narrow(static_cast<std::size_t>(kSums * width));
        std::vector<double> wide(narrow.size());
        for (std::int64_t p = begin; p < end; ++p) {
          if (!by_pixel) spread(one, p % channels);
          const float* row = by_pixel ? shared.data() : one.data();
          LaneRows<kParams> rows{0, 0, width, width, {}, narrow.data()};
          for (std::size_t k = 0; k < kParams; ++k)
            rows.params[k] = params[k] ? row + static_cast<std::int64_t>(k) * width : nullptr;
          const std::int64_t stop = std::min(total, (p + 1) * piece);
          for (std::int64_t i = p * piece; i < stop;) {
            const std::int64_t left = stop - i;
            rows.offset = i;
            rows.rows = std::clamp<std::int64_t>(left / width, 1, kFloatRows);
            rows.width = std::min(width, left);
            f(rows);
            i += rows.rows * rows.width;
            if constexpr (kSums > 0)
              flush_lanes(narrow.data(), wide.data(), static_cast<std::int64_t>(wide.size()));
          }
          for (int k = 0; k < kSums; ++k)
            for (std::int64_t i = 0; i < width; ++i) {
              double& sum = wide[static_cast<std::size_t>(k * width + i)];
              partial[static_cast<std::size_t>((p * kSums + k) * own + i % own)] += sum;
              sum = 0;
            }
        }
      });
  if constexpr (kSums > 0) add_pieces(partial, pieces, kSums, channels, by_pixel, sums);
}

}  // namespace zsq::cuda_kernels
