// SPDX-License-Identifier: Apache-2.0
// The last step of every generator.
#pragma once
#include <ATen/core/Tensor.h>

#include <array>

namespace zsq::generator {

// The middle of x [N, C, H', W'] f32, of `sides` height and width (at most H' and W'), after tanh
// and a BatchNorm without gamma and beta: each channel of the batch has mean 0 and variance 1, as
// images that are normalised for a network have.
at::Tensor normalised_pixels(const at::Tensor& x, const std::array<std::int64_t, 2>& sides);

}  // namespace zsq::generator
