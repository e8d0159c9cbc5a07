// SPDX-License-Identifier: Apache-2.0
// Batch moments per channel, as BatchNorm would see them in training.
//   mean_c = average over n, h, w of x,   variance_c = average of (x - mean_c)^2   (biased)
//
// x [N, C, H, W] or [N, C] f32 or bf16, contiguous or channels_last -> mean [C], variance [C] f32.
// Gradient, first derivatives only:
//   dL/dx = (dL/dmean_c + 2 (x - mean_c) dL/dvariance_c) / (N H W)
//
// Sums are in double and do not depend on the number of threads; the relative error of the variance
// stays below 1e-5 for means up to 10^4 deviations from zero.
#pragma once
#include <ATen/core/Tensor.h>

#include <utility>

namespace zsq::cuda_kernels {

std::pair<at::Tensor, at::Tensor> channel_moments(const at::Tensor& x);

}  // namespace zsq::cuda_kernels
