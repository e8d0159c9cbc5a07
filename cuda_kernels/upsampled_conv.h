// SPDX-License-Identifier: Apache-2.0
// Nearest-neighbour x2 and the 3x3 convolution after it, on the small image.
//   y = conv2d(upsample_nearest(x, 2), weight, padding 1),  x [N, C, H, W] -> y [N, D, 2H, 2W]
//
// x f32 or bf16, contiguous or channels_last; y has x's type; weight f32 [D, C, 3, 3]. Gradients to
// x and weight; of the CPU's form first derivatives only.
//
// The plain form takes 36 multiplications per pixel of x and pair of channels. As one transposed
// convolution, whose four output phases see 2x2 pixels each, it takes 16: the form of a GPU, and of
// bf16, which would round the differences below. On the CPU in f32 it takes 9. In one dimension,
// with taps (a, b, c), s = a + b + c and differences d_i = x_i - x_(i-1):
//   y_(2i) = s x_i - a d_i,   y_(2i+1) = s x_i + c d_(i+1)
// three products for two outputs, and in two dimensions the product of both.
#pragma once
#include <ATen/core/Tensor.h>

namespace zsq::cuda_kernels {

at::Tensor upsampled_conv(const at::Tensor& x, const at::Tensor& weight);

// Multiplications per pixel of x and pair of channels.
constexpr int upsampled_conv_products(c10::DeviceType device, at::ScalarType type) {
  return device == c10::DeviceType::CPU && type == at::kFloat ? 9 : 16;
}

}  // namespace zsq::cuda_kernels
