// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/cpu_channel_sums.h"
#include "cuda_kernels/scale_gradient_twins.h"

namespace zsq::cuda_kernels {
namespace {

// n elements of one channel; `slope` maps an element to its slope.
template <class T, class Slope>
ZSQ_HOST_DEVICE double sum_of_run(const T* __restrict x, const T* __restrict dy, std::int64_t n,
                                  const Slope& slope) {
  double lanes[kSumLanes] = {};
  std::int64_t i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes)
    for (int j = 0; j < kSumLanes; ++j) lanes[j] += load(dy[i + j]) * slope(load(x[i + j]));
  for (; i < n; ++i) lanes[0] += load(dy[i]) * slope(load(x[i]));
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

template <class T>
ZSQ_VECTORIZED double plain_run(const T* __restrict x, const T* __restrict dy, std::int64_t n,
                                SlopeGrid grid) {
  return sum_of_run(x, dy, n, [=](float v) { return slope_of(v, grid); });
}

template <class T>
ZSQ_VECTORIZED double affine_run(const T* __restrict x, const T* __restrict dy, std::int64_t n,
                                 float gain, float offset, SlopeGrid grid) {
  return sum_of_run(x, dy, n, [=](float v) { return slope_of(v, gain, offset, grid); });
}

template <class T>
ZSQ_VECTORIZED void affine_pixels(const T* __restrict x, const T* __restrict dy,
                                  std::int64_t pixels, std::int64_t channels,
                                  const float* __restrict gain, const float* __restrict offset,
                                  SlopeGrid grid, double* __restrict sums) {
  for (std::int64_t p = 0; p < pixels * channels; p += channels)
    for (std::int64_t c = 0; c < channels; ++c)
      sums[c] += load(dy[p + c]) * slope_of(load(x[p + c]), gain[c], offset[c], grid);
}

}  // namespace

template <class T>
void scale_gradient_cpu(const T* x, const T* dy, double* sums, const ScaleGradientView& view) {
  const std::int64_t channels = view.layout.channels;
  const auto run = [&](std::int64_t i, std::int64_t n, std::int64_t c) {
    const SlopeGrid grid = slope_grid(view, c);
    return view.gain ? affine_run(x + i, dy + i, n, view.gain[c], view.offset[c], grid)
                     : plain_run(x + i, dy + i, n, grid);
  };
  channel_sums<1>(
      view.layout, sums,
      [&](std::int64_t i, std::int64_t n, std::int64_t c, double* own) { own[c] += run(i, n, c); },
      [&](std::int64_t i, std::int64_t count, double* own) {
        if (channels == 1) {
          own[0] += run(i, count, 0);
        } else if (view.gain) {
          affine_pixels(x + i, dy + i, count, channels, view.gain, view.offset, slope_grid(view, 0),
                        own);
        } else {  // weights of one element a channel
          for (std::int64_t e = 0; e < count * channels; ++e)
            own[e % channels] += run(i + e, 1, e % channels);
        }
      });
}

template void scale_gradient_cpu(const float*, const float*, double*, const ScaleGradientView&);
template void scale_gradient_cpu(const Bf16*, const Bf16*, double*, const ScaleGradientView&);

}  // namespace zsq::cuda_kernels
