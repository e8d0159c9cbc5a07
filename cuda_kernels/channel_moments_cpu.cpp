// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/channel_moments_twins.h"
#include "cuda_kernels/cpu_channel_sums.h"

namespace zsq::cuda_kernels {
namespace {

template <class T>
ZSQ_VECTORIZED void row_sums(const T* __restrict x, std::int64_t n, double* first, double* second) {
  double sum[kSumLanes] = {}, squares[kSumLanes] = {};
  std::int64_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) {
    for (int j = 0; j < kSumLanes; ++j) {
      const double v = load(x[i + j]);
      sum[j] += v;
      squares[j] += v * v;
    }
  }
  for (; i < n; ++i) {
    const double v = load(x[i]);
    sum[0] += v;
    squares[0] += v * v;
  }
  for (int j = 0; j < kSumLanes; ++j) {
    *first += sum[j];
    *second += squares[j];
  }
}

template <class T>
ZSQ_VECTORIZED void pixel_sums(const T* __restrict x, std::int64_t pixels, std::int64_t channels,
                               double* __restrict first, double* __restrict second) {
  for (std::int64_t p = 0; p < pixels; ++p) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const double v = load(x[p * channels + c]);
      first[c] += v;
      second[c] += v * v;
    }
  }
}

template <class T>
ZSQ_VECTORIZED void backward_row(const T* __restrict x, T* __restrict dx, std::int64_t n,
                                 float mean, float a, float b) {
  for (std::int64_t i = 0; i < n; ++i) store(dx[i], a + b * (load(x[i]) - mean));
}

template <class T>
ZSQ_VECTORIZED void backward_pixel(const T* __restrict x, T* __restrict dx, std::int64_t channels,
                                   const float* __restrict mean, const float* __restrict a,
                                   const float* __restrict b) {
  for (std::int64_t c = 0; c < channels; ++c) store(dx[c], a[c] + b[c] * (load(x[c]) - mean[c]));
}

}  // namespace

template <class T>
void channel_moment_sums_cpu(const T* x, double* sums, ChannelLayout layout) {
  const std::int64_t channels = layout.channels;
  channel_sums<2>(
      layout, sums,
      [&](std::int64_t offset, std::int64_t n, std::int64_t c, double* own) {
        row_sums(x + offset, n, own + c, own + channels + c);
      },
      [&](std::int64_t offset, std::int64_t count, double* own) {
        pixel_sums(x + offset, count, channels, own, own + channels);
      });
}

template <class T>
void channel_moments_backward_cpu(const T* x, const float* mean, const float* a, const float* b,
                                  T* dx, ChannelLayout layout) {
  for_each_channel_run(
      layout,
      [&](std::int64_t offset, std::int64_t n, std::int64_t c) {
        backward_row(x + offset, dx + offset, n, mean[c], a[c], b[c]);
      },
      [&](std::int64_t offset) {
        backward_pixel(x + offset, dx + offset, layout.channels, mean, a, b);
      });
}

template void channel_moment_sums_cpu(const float*, double*, ChannelLayout);
template void channel_moments_backward_cpu(const float*, const float*, const float*, const float*,
                                           float*, ChannelLayout);
template void channel_moment_sums_cpu(const Bf16*, double*, ChannelLayout);
template void channel_moments_backward_cpu(const Bf16*, const float*, const float*, const float*,
                                           Bf16*, ChannelLayout);

}  // namespace zsq::cuda_kernels
