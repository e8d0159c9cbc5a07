// SPDX-License-Identifier: Apache-2.0
// Plain-ATen truth of cuda_kernels/bn_clip_fake_quant.h. The rounding is written as an added
// constant, so autograd gives the gradients that the header states.
#pragma once
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>

#include "tests/reference/fake_quant.h"

namespace zsq::reference {

inline at::Tensor along_dim1(const at::Tensor& t) { return t.reshape({1, -1, 1, 1}); }

inline at::Tensor bn_clip(const at::Tensor& x, const at::Tensor& gamma, const at::Tensor& beta,
                          const at::Tensor& mean, const at::Tensor& variance, double eps, float lo,
                          float hi, const std::optional<at::Tensor>& residual = std::nullopt) {
  const at::Tensor gain = gamma / (variance + eps).sqrt();
  at::Tensor u = x * along_dim1(gain) + along_dim1(beta - mean * gain);
  if (residual) u = u + *residual;
  const at::Tensor v = at::where(u <= lo, at::full_like(u, lo), u);
  return at::where(v >= hi, at::full_like(v, hi), v);
}

// y = v + constant where the gradient passes, a constant elsewhere.
inline at::Tensor straight_through(const at::Tensor& v, const at::Tensor& scale,
                                   const at::Tensor& zero_point, std::int64_t qmin,
                                   std::int64_t qmax, bool clipped) {
  const at::Tensor value = v.detach();
  const at::Tensor y = fake_quant(value, scale, zero_point, qmin, qmax);
  const at::Tensor passes =
      clipped ? inside(value, scale, zero_point, qmin, qmax) : at::ones_like(value, at::kBool);
  return at::where(passes, v, value) + (y - value);
}

}  // namespace zsq::reference
