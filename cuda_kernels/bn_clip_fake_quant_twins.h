// SPDX-License-Identifier: Apache-2.0
// Both twins of bn_clip_fake_quant.h over raw memory, at least one element; T is float or Bf16.
#pragma once
#include "cuda_kernels/channel_layout.h"
#include "cuda_kernels/cuda_stream.h"
#include "cuda_kernels/element.h"

namespace zsq::cuda_kernels {

// The folded BatchNorm and the clip: u = x * gain + offset, v = clamp(u, lo, hi).
ZSQ_HOST_DEVICE float affine(float x, float gain, float offset) { return x * gain + offset; }

struct ClipGrid {
  float lo, hi, scale, zero_point;
  CodeRange range;
  bool clipped;  // surrogate
};

ZSQ_HOST_DEVICE float clip_quant_value(float u, ClipGrid grid) {
  return fake_quant_value(clamp(u, grid.lo, grid.hi), grid.scale, grid.zero_point, grid.range);
}

// Whether the gradient passes from y to u; false for NaN.
ZSQ_HOST_DEVICE bool clip_quant_passes(float u, ClipGrid grid) {
  return (grid.lo < u) & (u < grid.hi) &
         (!grid.clipped | inside_range(u, grid.scale, grid.zero_point, grid.range));
}

struct BnClipView {
  ChannelLayout layout;
  const float *gain, *offset, *mean;  // [C]
  const float *scale, *zero_point;    // one value each
  float lo, hi;
  CodeRange range;
  bool clipped;
};

template <class T>
void bn_clip_fake_quant_cpu(const T* x, T* y, const BnClipView& view);
template <class T>
void bn_clip_fake_quant_cuda(const T* x, T* y, const BnClipView& view, cudaStream_t stream);

// dx = du * gain, and per channel the sums over du and du * (x - mean): sums [2, C] doubles.
template <class T>
void bn_clip_fake_quant_backward_cpu(const T* x, const T* dy, T* dx, double* sums,
                                     const BnClipView& view);
// `partial` is scratch for channel_sums_scratch(channels) doubles.
template <class T>
void bn_clip_fake_quant_backward_cuda(const T* x, const T* dy, T* dx, double* sums, double* partial,
                                      const BnClipView& view, cudaStream_t stream);

}  // namespace zsq::cuda_kernels
