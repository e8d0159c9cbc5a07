// SPDX-License-Identifier: Apache-2.0
// BatchNorm in training (batch moments, no running ones) and leaky ReLU after it.
//   mean_c, variance_c: of x over n, h, w (biased);   u = (x - mean) / sqrt(variance + eps) * gamma
//   + beta y = u where u > 0, else slope * u
//
// x [N, C, H, W] f32 or bf16 with at least one element per channel (the arithmetic is in f32),
// contiguous or channels_last, and y keeps layout and type; gamma, beta [C], or [N, C] where each
// image has its own (class-conditional BatchNorm; 65,535 images at most on a GPU). NaN stays NaN.
//
// Gradients to x, gamma and beta, through the moments too, first derivatives only; at u = 0 the
// slope counts. Two passes forward and two backward.
//
// Where x is a part of a batch that several ranks share, which then call this together, moments and
// the gradient through them are those of the whole batch; the gradients to gamma and beta are what
// the part adds to them.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>

namespace zsq::cuda_kernels {

struct BatchPart {
  double share = 1;  // of the images
  // Adds a dense f64 tensor up over the ranks, in place; empty: x is the whole batch.
  std::function<void(const at::Tensor&)> sum = {};
};

at::Tensor bn_leaky_relu(const at::Tensor& x, const at::Tensor& gamma, const at::Tensor& beta,
                         double eps, double slope, const BatchPart& part = {});

}  // namespace zsq::cuda_kernels
