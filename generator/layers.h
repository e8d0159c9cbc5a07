// SPDX-License-Identifier: Apache-2.0
// What the generators (generator/generator.h, generator/genie.h) have in common.
#pragma once
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

#include "cuda_kernels/bn_leaky_relu.h"

namespace zsq::generator {

// First weights of a layer, f32, uniform within 1 / sqrt(fan_in).
at::Tensor first_weights(at::IntArrayRef shape, std::int64_t fan_in, const at::Generator& stream);

// The first layer: latents [N, L], weight [h w C, L] and bias [h w C], all of one type, for `map`
// {h, w} -> [N, C, h, w], channels_last without a copy, because features are position-major.
at::Tensor projected_map(const at::Tensor& latents, const at::Tensor& weight,
                         const at::Tensor& bias, const std::array<std::int64_t, 2>& map);

// The last step: the middle of x [N, C, H', W'] f32, of `sides` height and width (at most H' and
// W'), after tanh and a BatchNorm whose gamma is `deviation` and beta `mean`: of 1 and 0 each
// channel of the batch has mean 0 and variance 1, as images that are normalised for a network have.
at::Tensor normalised_pixels(const at::Tensor& x, const std::array<std::int64_t, 2>& sides,
                             const cuda_kernels::BatchPart& part = {}, double mean = 0,
                             double deviation = 1);

}  // namespace zsq::generator
