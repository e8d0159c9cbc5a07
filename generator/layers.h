// SPDX-License-Identifier: Apache-2.0
// The two building blocks of the generator that a library does not have ready. Both keep the layout
// (contiguous or channels_last) of x.
#pragma once
#include <ATen/core/Tensor.h>

namespace zsq::generator {

// conv2d(nearest-neighbour x2 of x, weight, padding 1), x [N, C, H, W], weight [D, C, 3, 3]
// -> [N, D, 2H, 2W]. Computed as one transposed convolution of stride 2 on the small image: each of
// the four output phases sees 2x2 pixels, 16 multiplications where the plain form does 36.
at::Tensor upsampled_conv(const at::Tensor& x, const at::Tensor& weight);

// Training-mode BatchNorm over x [N, C, H, W] (biased batch moments, no running ones), then
// gamma * . + beta. gamma, beta: [C], or [N, C] where each image has its own, or undefined.
at::Tensor batch_norm(const at::Tensor& x, const at::Tensor& gamma, const at::Tensor& beta,
                      double eps);

}  // namespace zsq::generator
