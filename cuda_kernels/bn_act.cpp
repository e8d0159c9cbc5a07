// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/bn_act.h"

#include <ATen/TensorOperators.h>

namespace zsq::cuda_kernels {

FoldedBatchNorm fold_batch_norm(const at::Tensor& gamma, const at::Tensor& beta,
                                const at::Tensor& mean, const at::Tensor& variance, double eps) {
  const at::Tensor deviation = (variance + eps).sqrt_();
  const at::Tensor gain = gamma / deviation;
  return {gain, beta - mean * gain, deviation};
}

void check_batch_norm(const char* op, const at::Tensor& x,
                      const std::optional<at::Tensor>& residual, const at::Tensor& gamma,
                      const at::Tensor& beta, const at::Tensor& mean, const at::Tensor& variance,
                      double eps, float lo, float hi) {
  check_activation(op, "x", x);
  if (x.dim() != 4) fail(op, "x", describe(x), "[N, C, H, W]");
  if (residual && (residual->sizes() != x.sizes() || residual->device() != x.device()))
    fail(op, "residual", describe(*residual), "the shape and device of x, " + describe(x));
  const at::IntArrayRef channels = x.sizes().slice(1, 1);
  check_like(op, "gamma", gamma, x, channels);
  check_like(op, "beta", beta, x, channels);
  check_like(op, "mean", mean, x, channels);
  check_like(op, "variance", variance, x, channels);
  if (!(eps >= 0)) fail(op, "eps", std::to_string(eps), "at least 0");
  if (!(lo < hi))
    fail(op, "[lo, hi]", "[" + std::to_string(lo) + ", " + std::to_string(hi) + "]", "lo < hi");
}

}  // namespace zsq::cuda_kernels
