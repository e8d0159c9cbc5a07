// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/channel_moments_twins.h"
#include "cuda_kernels/cpu_channel_sums.h"

namespace zsq::cuda_kernels {
namespace {

ZSQ_VECTORIZED void row_sums(const float* __restrict x, std::int64_t n, double* first,
                             double* second) {
  double sum[kSumLanes] = {}, squares[kSumLanes] = {};
  std::int64_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) {
    for (int j = 0; j < kSumLanes; ++j) {
      const double v = x[i + j];
      sum[j] += v;
      squares[j] += v * v;
    }
  }
  for (; i < n; ++i) {
    const double v = x[i];
    sum[0] += v;
    squares[0] += v * v;
  }
  for (int j = 0; j < kSumLanes; ++j) {
    *first += sum[j];
    *second += squares[j];
  }
}

ZSQ_VECTORIZED void pixel_sums(const float* __restrict x, std::int64_t pixels,
                               std::int64_t channels, double* __restrict first,
                               double* __restrict second) {
  for (std::int64_t p = 0; p < pixels; ++p) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const double v = x[p * channels + c];
      first[c] += v;
      second[c] += v * v;
    }
  }
}

ZSQ_VECTORIZED void backward_row(const float* __restrict x, float* __restrict dx, std::int64_t n,
                                 float mean, float a, float b) {
  for (std::int64_t i = 0; i < n; ++i) dx[i] = a + b * (x[i] - mean);
}

ZSQ_VECTORIZED void backward_pixel(const float* __restrict x, float* __restrict dx,
                                   std::int64_t channels, const float* __restrict mean,
                                   const float* __restrict a, const float* __restrict b) {
  for (std::int64_t c = 0; c < channels; ++c) dx[c] = a[c] + b[c] * (x[c] - mean[c]);
}

}  // namespace

void channel_moment_sums_cpu(const float* x, double* sums, ChannelLayout layout) {
  channel_sums(
      layout, sums,
      [&](std::int64_t offset, std::int64_t n, std::int64_t, double* first, double* second) {
        row_sums(x + offset, n, first, second);
      },
      [&](std::int64_t offset, std::int64_t count, double* first, double* second) {
        pixel_sums(x + offset, count, layout.channels, first, second);
      });
}

void channel_moments_backward_cpu(const float* x, const float* mean, const float* a, const float* b,
                                  float* dx, ChannelLayout layout) {
  for_each_channel_run(
      layout,
      [&](std::int64_t offset, std::int64_t n, std::int64_t c) {
        backward_row(x + offset, dx + offset, n, mean[c], a[c], b[c]);
      },
      [&](std::int64_t offset) {
        backward_pixel(x + offset, dx + offset, layout.channels, mean, a, b);
      });
}

}  // namespace zsq::cuda_kernels
