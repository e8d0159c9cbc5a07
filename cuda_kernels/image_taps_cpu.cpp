// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/image_taps_cpu.h"

#include <vector>

#include "cuda_kernels/cpu_loops.h"

namespace zsq::cuda_kernels {
namespace {

template <class T>
ZSQ_VECTORIZED void add_run(const T* __restrict from, float* __restrict to, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] += load(from[i]);
}

template <class T>
ZSQ_VECTORIZED void store_run(const float* __restrict from, T* __restrict to, std::int64_t n,
                              std::int64_t stride) {
  for (std::int64_t i = 0; i < n; ++i) store(to[i], from[i * stride]);
}

// Tap k of a row lies on pixels stride (o + shift) + phase, o in [begin, end).
struct Lane {
  std::int64_t phase, shift, begin, end;
};
Lane lane_of(const TapSizes& s, std::int64_t k) {
  const std::int64_t from_padding = k - s.padding;
  const std::int64_t phase = ((from_padding % s.stride) + s.stride) % s.stride;
  const std::int64_t shift = (from_padding - phase) / s.stride;
  const std::int64_t pixels = (s.width - phase + s.stride - 1) / s.stride;
  return {phase, shift, std::max<std::int64_t>(0, -shift), std::min(s.columns, pixels - shift)};
}

// Sums of one row of an image, [channels, stride, pixels of a phase].
struct RowSums {
  std::vector<float> values;
  std::int64_t phase_width;

  explicit RowSums(const TapSizes& s) : phase_width((s.width + s.stride - 1) / s.stride) {
    values.resize(static_cast<std::size_t>(s.channels * s.stride * phase_width));
  }
  float* at(const TapSizes& s, std::int64_t channel, std::int64_t phase) {
    return values.data() + (channel * s.stride + phase) * phase_width;
  }
};

template <class T>
void add_row(const T* taps, const TapSizes& s, std::int64_t image, std::int64_t y, RowSums& sums) {
  for (std::int64_t c = 0; c < s.channels; ++c)
    for (std::int64_t ky = 0; ky < s.kernel; ++ky) {
      const std::int64_t from_top = y + s.padding - ky, row = from_top / s.stride;
      if (from_top < 0 || from_top % s.stride != 0 || row >= s.rows) continue;
      for (std::int64_t kx = 0; kx < s.kernel; ++kx) {
        const Lane lane = lane_of(s, kx);
        if (lane.begin >= lane.end) continue;
        const std::int64_t tap = (c * s.kernel + ky) * s.kernel + kx;
        const T* from = taps + ((tap * s.images + image) * s.rows + row) * s.columns;
        add_run(from + lane.begin, sums.at(s, c, lane.phase) + lane.begin + lane.shift,
                lane.end - lane.begin);
      }
    }
}

void interleave_row(RowSums& sums, const TapSizes& s, const float* bias, float* row) {
  for (std::int64_t c = 0; c < s.channels; ++c)
    for (std::int64_t phase = 0; phase < s.stride; ++phase) {
      const float *from = sums.at(s, c, phase), add = bias ? bias[c] : 0.0f;
      for (std::int64_t x = phase; x < s.width; x += s.stride)
        row[x * s.channels + c] = *from++ + add;
    }
}

}  // namespace

template <class T>
void fold_taps(const T* taps, const TapSizes& s, const float* bias, float* image) {
  RowSums sums(s);
  for (std::int64_t n = 0; n < s.images; ++n)
    for (std::int64_t y = 0; y < s.height; ++y) {
      std::fill(sums.values.begin(), sums.values.end(), 0.0f);
      add_row(taps, s, n, y, sums);
      interleave_row(sums, s, bias, image + (n * s.height + y) * s.width * s.channels);
    }
}

template <class T>
void unfold_taps(const float* image, const TapSizes& s, T* taps) {
  std::vector<T> planes(static_cast<std::size_t>(s.channels * s.height * s.width));
  for (std::int64_t n = 0; n < s.images; ++n) {
    for (std::int64_t c = 0; c < s.channels; ++c)
      store_run(image + n * s.height * s.width * s.channels + c,
                planes.data() + c * s.height * s.width, s.height * s.width, s.channels);
    for (std::int64_t tap = 0; tap < s.channels * s.kernel * s.kernel; ++tap) {
      const std::int64_t c = tap / (s.kernel * s.kernel), ky = tap / s.kernel % s.kernel;
      const Lane lane = lane_of(s, tap % s.kernel);
      for (std::int64_t row = 0; row < s.rows; ++row) {
        T* to = taps + ((tap * s.images + n) * s.rows + row) * s.columns;
        const std::int64_t y = row + ky - s.padding;
        const bool inside = y >= 0 && y < s.height && lane.begin < lane.end;
        std::fill(to, to + (inside ? lane.begin : s.columns), T{});
        if (!inside) continue;
        const T* from = planes.data() + (c * s.height + y) * s.width + lane.shift;
        std::copy(from + lane.begin, from + lane.end, to + lane.begin);
        std::fill(to + lane.end, to + s.columns, T{});
      }
    }
  }
}

template void fold_taps(const float*, const TapSizes&, const float*, float*);
template void fold_taps(const Bf16*, const TapSizes&, const float*, float*);
template void unfold_taps(const float*, const TapSizes&, float*);
template void unfold_taps(const float*, const TapSizes&, Bf16*);

}  // namespace zsq::cuda_kernels
