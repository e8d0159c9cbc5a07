// SPDX-License-Identifier: Apache-2.0
// BatchNorm (inference), the sum with a residual, clip and fake-quantization per tensor in one
// pass.
//   u = (x - mean) / sqrt(variance + eps) * gamma + beta (+ residual)
//   v = clamp(u, lo, hi),   y = fake_quant(v)
//
// u is computed as x * gain + offset with gain = gamma / sqrt(variance + eps) and
// offset = beta - mean * gain. NaN stays NaN.
// x [N, C, H, W] f32 or bf16 (the arithmetic is in f32), contiguous or channels_last, and y keeps
// layout and type; residual like x; gamma, beta, mean, variance [C]; scale, zero_point [].
//
// Gradients to x, residual, gamma, beta and scale (scale_gradient.h), first derivatives only:
// dL/dv = dL/dy where the code was not clamped (surrogate clipped) or everywhere (pass_through);
// dL/du = dL/dv where lo < u < hi, else 0. mean and variance get none.
#pragma once
#include <optional>

#include "cuda_kernels/fake_quant.h"

namespace zsq::cuda_kernels {

struct BnClipFakeQuantArgs {
  double eps = 1e-5;
  float lo = 0, hi = 0;  // hi = infinity: no upper clip
  std::int64_t qmin = 0, qmax = 0;
  Surrogate surrogate = Surrogate::clipped;
};

at::Tensor bn_clip_fake_quant(const at::Tensor& x, const std::optional<at::Tensor>& residual,
                              const at::Tensor& gamma, const at::Tensor& beta,
                              const at::Tensor& mean, const at::Tensor& variance,
                              const at::Tensor& scale, const at::Tensor& zero_point,
                              const BnClipFakeQuantArgs& args);

}  // namespace zsq::cuda_kernels
