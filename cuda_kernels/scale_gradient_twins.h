// SPDX-License-Identifier: Apache-2.0
// Both twins of scale_gradient.h over raw memory, at least one element; T is float or Bf16.
#pragma once
#include "cuda_kernels/channel_layout.h"
#include "cuda_kernels/cuda_stream.h"
#include "cuda_kernels/element.h"

namespace zsq::cuda_kernels {

// What was quantized: v = clamp(x * gain + offset, lo, hi) with gain, offset [C]; or x itself where
// gain is null. scale and zero_point hold one value, or C of them.
struct ScaleGradientView {
  ChannelLayout layout;
  const float *gain, *offset;
  float lo, hi;
  const float *scale, *zero_point;
  bool per_channel;
  CodeRange range;
};

// The grid of one channel, with the clip before it.
struct SlopeGrid {
  float lo, hi, scale, zero_point;
  CodeRange range;
};
ZSQ_HOST_DEVICE SlopeGrid slope_grid(const ScaleGradientView& view, std::int64_t c) {
  const std::int64_t g = view.per_channel ? c : 0;
  return {view.lo, view.hi, view.scale[g], view.zero_point[g], view.range};
}

ZSQ_HOST_DEVICE float slope_of(float x, const SlopeGrid& grid) {
  return scale_slope(x, grid.scale, grid.zero_point, grid.range);
}
ZSQ_HOST_DEVICE float slope_of(float x, float gain, float offset, const SlopeGrid& grid) {
  return slope_of(clamp(x * gain + offset, grid.lo, grid.hi), grid);
}

// sums [C]: per channel the sum over dy * dy/dscale.
template <class T>
void scale_gradient_cpu(const T* x, const T* dy, double* sums, const ScaleGradientView& view);
// `partial` is scratch for channel_sums_scratch(channels) doubles.
template <class T>
void scale_gradient_cuda(const T* x, const T* dy, double* sums, double* partial,
                         const ScaleGradientView& view, cudaStream_t stream);

}  // namespace zsq::cuda_kernels
