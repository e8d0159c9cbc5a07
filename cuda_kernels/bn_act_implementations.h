// SPDX-License-Identifier: Apache-2.0
// The CPU and the CUDA implementation of the ops that apply a BatchNorm and what follows it in one
// pass: bn_clip_fake_quant, bn_clip_moments and bn_leaky_relu, over raw memory of at least one
// element. T is float or Bf16, arithmetic is in float, `Act` one of ClipAct, ClipQuant, LeakyAct.
//   u = x * gain + offset (+ residual),   y = act(u),   du = dL/dy act'(u)
#pragma once
#include "cuda_kernels/channel_layout.h"
#include "cuda_kernels/cuda_stream.h"
#include "cuda_kernels/element.h"

namespace zsq::cuda_kernels {

ZSQ_HOST_DEVICE float affine(float x, float gain, float offset) { return x * gain + offset; }

struct ClipAct {
  float lo, hi;
  ZSQ_HOST_DEVICE ClipAct loaded() const { return *this; }
  ZSQ_HOST_DEVICE float value(float u) const { return clamp(u, lo, hi); }
  // Of dy at y; 0 if the clip binds, and for NaN.
  ZSQ_HOST_DEVICE float gradient(float u, float dy) const {
    return ((lo < u) & (u < hi)) ? dy : 0.0f;
  }
};

struct ClipQuantAct {
  float lo, hi;
  UniformGrid grid;
  bool clipped;  // surrogate
  ZSQ_HOST_DEVICE float value(float u) const { return fake_quant_value(clamp(u, lo, hi), grid); }
  ZSQ_HOST_DEVICE float gradient(float u, float dy) const {
    // Where the clip does not bind, the clipped input is u: one division serves all.
    const bool inside = grid.contains(clamp(u, lo, hi));
    const bool passes = (lo < u) & (u < hi) & (!clipped | inside);
    return passes ? dy : 0.0f;
  }
  // dy/dscale of y = value(u), see scale_gradient.h.
  ZSQ_HOST_DEVICE float scale_slope_at(float u) const { return grid.scale_slope(clamp(u, lo, hi)); }
};

// The same while scale and zero point are still in the tensors' memory.
struct ClipQuant {
  float lo, hi;
  const float *scale, *zero_point;
  CodeRange range;
  bool clipped;
  ZSQ_HOST_DEVICE ClipQuantAct loaded() const {
    return {lo, hi, {*scale, *zero_point, range}, clipped};
  }
};

struct LeakyAct {
  float slope;
  ZSQ_HOST_DEVICE LeakyAct loaded() const { return *this; }
  ZSQ_HOST_DEVICE float value(float u) const { return u > 0 ? u : u * slope; }
  ZSQ_HOST_DEVICE float gradient(float u, float dy) const { return u > 0 ? dy : dy * slope; }
};

// Tensors in one memory order, null if a pass does not use them. The residual may be null; where
// it is not, a pass that writes dx writes dresidual too. They are `images` of `layout` (65,535 at
// most), one after the other: one if gain and offset are those of all, else each has its own, and
// its sums.
template <class T>
struct BnActTensors {
  ChannelLayout layout;
  const T *x, *residual, *dy;
  T *y, *dx, *dresidual;
  std::int64_t images = 1;

  // One of them.
  BnActTensors image(std::int64_t i) const {
    const std::int64_t begin = i * layout.outer * layout.channels * layout.inner;
    const auto from = [begin](auto* t) { return t ? t + begin : t; };
    return {layout, from(x), from(residual), from(dy), from(y), from(dx), from(dresidual)};
  }
};

// [C] each, gain and offset [images, C]; null if a pass does not read it.
struct BnActChannels {
  const float *gain, *offset;
  const float* mean;  // what sums and b are taken about
  const float *a, *b;

  BnActChannels image(std::int64_t i, std::int64_t channels) const {
    return {gain + i * channels, offset + i * channels, mean, a, b};
  }
};

// What an implementation needs besides: `partial` is scratch for images *
// channel_sums_scratch(layout) doubles.
struct BnActScratch {
  double* partial;
  cudaStream_t stream;
};

// y
template <class T, class Act>
void bn_act_cpu(const BnActTensors<T>& t, const BnActChannels& c, Act act);
template <class T, class Act>
void bn_act_cuda(const BnActTensors<T>& t, const BnActChannels& c, Act act, BnActScratch scratch);

// y, and per channel the sums over (x - mean) and (x - mean)^2: sums [images, 2, C].
template <class T>
void bn_act_moments_cpu(const BnActTensors<T>& t, const BnActChannels& c, ClipAct act,
                        double* sums);
template <class T>
void bn_act_moments_cuda(const BnActTensors<T>& t, const BnActChannels& c, ClipAct act,
                         double* sums, BnActScratch scratch);

// Per channel the sums over du and du (x - mean), and with `slopes` over dy act.scale_slope_at(u):
// sums [images, 2 or 3, C]. bn_act_backward also writes dx = du gain, dresidual = du.
template <class T>
void bn_act_backward_cpu(const BnActTensors<T>& t, const BnActChannels& c, ClipQuant act,
                         bool slopes, double* sums);
template <class T>
void bn_act_backward_cuda(const BnActTensors<T>& t, const BnActChannels& c, ClipQuant act,
                          bool slopes, double* sums, BnActScratch scratch);
template <class T>
void bn_act_sums_cpu(const BnActTensors<T>& t, const BnActChannels& c, LeakyAct act, double* sums);
template <class T>
void bn_act_sums_cuda(const BnActTensors<T>& t, const BnActChannels& c, LeakyAct act, double* sums,
                      BnActScratch scratch);

// dx = du gain + a + b (x - mean), dresidual = du
template <class T, class Act>
void bn_act_through_moments_cpu(const BnActTensors<T>& t, const BnActChannels& c, Act act);
template <class T, class Act>
void bn_act_through_moments_cuda(const BnActTensors<T>& t, const BnActChannels& c, Act act,
                                 BnActScratch scratch);

}  // namespace zsq::cuda_kernels
