// SPDX-License-Identifier: Apache-2.0
// Convolutions at the ends of networks, where images with few channels come in or go out. at::'s
// convolutions fill vectors with channels, so on a CPU three of them leave most of a vector idle.
// Here pixels fill it: one matrix product gives every tap of every pixel, and the taps that fall on
// one pixel of the image are added up in f32.
//
// Images are f32; maps and products are of type `work`, f32 or bf16. The kernel is square, groups
// and dilation are 1. On CUDA both are at::conv2d. First derivatives only.
#pragma once
#include <ATen/core/Tensor.h>

#include <optional>

namespace zsq::cuda_kernels {

// y = conv2d(x, weight, bias, stride 1, padding), x [N, C, H, W] of type work -> y [N, D, H', W']
// f32, channels_last; weight f32 [D, C, K, K], bias f32 [D], padding < K. Gradients to all three.
at::Tensor conv_to_image(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                         std::int64_t padding);

// y = conv2d(x, weight, bias, stride, padding) as at:: computes it, x f32 [N, C, H, W] -> y of type
// work; weight f32 [D, C, K, K], bias f32 [D] or none, without gradients: a network that stays as
// it is. The gradient to x is the one that is computed from the taps.
at::Tensor conv_from_image(const at::Tensor& x, const at::Tensor& weight,
                           const std::optional<at::Tensor>& bias, std::int64_t stride,
                           std::int64_t padding, at::ScalarType work);

}  // namespace zsq::cuda_kernels
