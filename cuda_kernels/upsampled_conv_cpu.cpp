// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/upsampled_conv_cpu.h"

#include "cuda_kernels/cpu_loops.h"

namespace zsq::cuda_kernels {
namespace {

ZSQ_VECTORIZED void subtract(const float* __restrict a, const float* __restrict b,
                             float* __restrict y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = a[i] - b[i];
}

ZSQ_VECTORIZED void copy(const float* __restrict a, float* __restrict y, std::int64_t n,
                         float sign) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = sign * a[i];
}

ZSQ_VECTORIZED void mixed_difference(const float* __restrict row, const float* __restrict above,
                                     float* __restrict vh, std::int64_t n, std::int64_t channels) {
  for (std::int64_t i = 0; i < channels; ++i) vh[i] = row[i] - above[i];
  for (std::int64_t i = channels; i < n; ++i)
    vh[i] = (row[i] - above[i]) - (row[i - channels] - above[i - channels]);
  for (std::int64_t i = n; i < n + channels; ++i) vh[i] = above[i - channels] - row[i - channels];
}

ZSQ_VECTORIZED void combine(const float* __restrict s, const float* __restrict v,
                            const float* __restrict h, const float* __restrict vh,
                            float* __restrict y, std::int64_t width, std::int64_t channels) {
  for (std::int64_t j = 0; j < width; ++j) {
    const float *hl = h + 2 * j * channels, *hr = hl + 3 * channels;  // (j, 0) and (j + 1, 1)
    const float *vl = vh + 2 * j * channels, *vr = vl + 3 * channels;
    float *left = y + 2 * j * channels, *right = left + channels;
    for (std::int64_t c = 0; c < channels; ++c) {
      const float both = s[j * channels + c] + v[j * channels + c];
      left[c] = both + (hl[c] + vl[c]);
      right[c] = both + (hr[c] + vr[c]);
    }
  }
}

ZSQ_VECTORIZED void spread(const float* __restrict top, const float* __restrict bottom,
                           float* __restrict s, float* __restrict v0, float* __restrict v1,
                           float* __restrict h, float* __restrict vh0, float* __restrict vh1,
                           std::int64_t width, std::int64_t channels) {
  for (std::int64_t c = 0; c < channels; ++c) {  // what no output reads: (0, 1) and (W, 0)
    const std::int64_t first = channels + c, last = 2 * width * channels + c;
    for (float* t : {h, vh0, vh1}) {
      t[first] = 0.0f;
      t[last] = 0.0f;
    }
  }
  for (std::int64_t j = 0; j < width; ++j) {
    const std::int64_t l = 2 * j * channels, r = l + channels;  // in y
    const std::int64_t to_l = l, to_r = l + 3 * channels;       // in h and vh
    for (std::int64_t c = 0; c < channels; ++c) {
      const float tl = top[l + c], tr = top[r + c];
      const float bl = bottom[l + c], br = bottom[r + c];
      const float upper = tl + tr, lower = bl + br;
      s[j * channels + c] = upper + lower;
      v0[j * channels + c] = upper;
      v1[j * channels + c] = lower;
      h[to_l + c] = tl + bl;
      h[to_r + c] = tr + br;
      vh0[to_l + c] = tl;
      vh0[to_r + c] = tr;
      vh1[to_l + c] = bl;
      vh1[to_r + c] = br;
    }
  }
}

}  // namespace

void row_differences(const DifferenceRows& t, std::int64_t width, std::int64_t channels) {
  const std::int64_t n = width * channels;
  if (t.h) {
    copy(t.row, t.h, channels, 1.0f);
    subtract(t.row + channels, t.row, t.h + channels, n - channels);
    copy(t.row + n - channels, t.h + n, channels, -1.0f);
  }
  subtract(t.row, t.above, t.v, n);
  mixed_difference(t.row, t.above, t.vh, n, channels);
}

void combine_row(const OutputRows& t, std::int64_t width, std::int64_t channels) {
  combine(t.s, t.v, t.h, t.vh, t.y, width, channels);
}

void spread_rows(const OutputGradientRows& t, std::int64_t width, std::int64_t channels) {
  spread(t.dy[0], t.dy[1], t.s, t.v[0], t.v[1], t.h, t.vh[0], t.vh[1], width, channels);
}

ZSQ_VECTORIZED void gather_plain(const float* __restrict s, const float* __restrict h,
                                 float* __restrict dx, std::int64_t width, std::int64_t channels) {
  for (std::int64_t i = 0; i < width * channels; ++i) dx[i] += s[i] + (h[i] - h[i + channels]);
}

ZSQ_VECTORIZED void gather_vertical(const float* __restrict v, const float* __restrict vh,
                                    float* __restrict dx, float sign, std::int64_t width,
                                    std::int64_t channels) {
  for (std::int64_t i = 0; i < width * channels; ++i)
    dx[i] += sign * (v[i] + (vh[i] - vh[i + channels]));
}

}  // namespace zsq::cuda_kernels
