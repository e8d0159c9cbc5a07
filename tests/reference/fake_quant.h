// SPDX-License-Identifier: Apache-2.0
// Plain-ATen truth of cuda_kernels/fake_quant.h, recorded by autograd where it can be.
#pragma once
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/round.h>

namespace zsq::reference {

// [] or [C] -> a shape that broadcasts along dimension 0 of x.
inline at::Tensor along_dim0(const at::Tensor& t, const at::Tensor& x) {
  if (t.numel() == 1) return t.reshape({});
  std::vector<std::int64_t> shape(x.dim(), 1);
  shape[0] = t.numel();
  return t.reshape(shape);
}

inline at::Tensor unclamped_codes(const at::Tensor& x, const at::Tensor& scale,
                                  const at::Tensor& zero_point) {
  return at::round(x / along_dim0(scale, x)) + along_dim0(zero_point, x);
}

inline at::Tensor codes(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& zero_point,
                        std::int64_t qmin, std::int64_t qmax) {
  return unclamped_codes(x, scale, zero_point).clamp(qmin, qmax);
}

inline at::Tensor fake_quant(const at::Tensor& x, const at::Tensor& scale,
                             const at::Tensor& zero_point, std::int64_t qmin, std::int64_t qmax) {
  return (codes(x, scale, zero_point, qmin, qmax) - along_dim0(zero_point, x)) *
         along_dim0(scale, x);
}

// Where the code is not clamped.
inline at::Tensor inside(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& zero_point,
                         std::int64_t qmin, std::int64_t qmax) {
  const at::Tensor code = unclamped_codes(x, scale, zero_point);
  return at::logical_and(code >= qmin, code <= qmax);
}

}  // namespace zsq::reference
