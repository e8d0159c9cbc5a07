// SPDX-License-Identifier: Apache-2.0
// Rotates the channels of linear bottlenecks, as language models are rotated before quantization
// (QuaRot, arXiv 2404.00456). Let x be a tensor that BatchNorm layers and their sums make and that
// 1x1 convolutions V read, and m its mean. For any orthogonal R
//   V x = (V R^T)(R x - R m) + V m,
// so R goes into the convolutions that make x, R^T into those that read it, and the means into the
// BatchNorm layers that follow these; tensors that additions join take the same R. The float
// network computes the same, up to rounding errors. Per tensor, one scale serves channels whose
// deviations differ by an order of magnitude; R is chosen such that R x has the same variance in
// all channels, and mean 0. R is the discrete Hartley transform, which mixes all channels, followed
// by Givens rotations, each of which gives one channel the mean variance (Bendel and Mickey 1978).
#pragma once
#include "models/graph.h"

namespace zsq::quant {

// Whether rotate_bottlenecks() changes anything: a group of linear_groups() of which all layers are
// 1x1 convolutions followed by BatchNorm, and which convolutions without bias make.
bool has_bottlenecks(const models::Model& model);

// images: f32 [N, C, H, W], of which only the correlations between channels are used; variances are
// those that BatchNorm implies. They do not have to show the network's classes.
models::Model rotate_bottlenecks(models::Model model, const at::Tensor& images,
                                 std::int64_t batch_size);

}  // namespace zsq::quant
