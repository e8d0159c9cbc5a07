// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/cpu_channel_sums.h"
#include "cuda_kernels/scale_gradient_twins.h"

namespace zsq::cuda_kernels {
namespace {

template <class T>
ZSQ_VECTORIZED double row_sum(const T* __restrict x, const T* __restrict dy, std::int64_t n,
                              std::int64_t c, ScaleGradientView view) {
  double lanes[kSumLanes] = {};
  std::int64_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes)
    for (int j = 0; j < kSumLanes; ++j)
      lanes[j] += load(dy[i + j]) * scale_slope(load(x[i + j]), c, view);
  for (; i < n; ++i) lanes[0] += load(dy[i]) * scale_slope(load(x[i]), c, view);
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

template <class T>
ZSQ_VECTORIZED void pixel_sums(const T* __restrict x, const T* __restrict dy, std::int64_t pixels,
                               double* __restrict sums, ScaleGradientView view) {
  const std::int64_t channels = view.layout.channels;
  for (std::int64_t p = 0; p < pixels * channels; p += channels)
    for (std::int64_t c = 0; c < channels; ++c)
      sums[c] += load(dy[p + c]) * scale_slope(load(x[p + c]), c, view);
}

}  // namespace

template <class T>
void scale_gradient_cpu(const T* x, const T* dy, double* sums, const ScaleGradientView& view) {
  channel_sums<1>(
      view.layout, sums,
      [&](std::int64_t i, std::int64_t n, std::int64_t c, double* own) {
        own[c] += row_sum(x + i, dy + i, n, c, view);
      },
      [&](std::int64_t i, std::int64_t count, double* own) {
        pixel_sums(x + i, dy + i, count, own, view);
      });
}

template void scale_gradient_cpu(const float*, const float*, double*, const ScaleGradientView&);
template void scale_gradient_cpu(const Bf16*, const Bf16*, double*, const ScaleGradientView&);

}  // namespace zsq::cuda_kernels
