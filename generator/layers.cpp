// SPDX-License-Identifier: Apache-2.0
#include "generator/layers.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/tanh.h>

#include <cmath>

#include "cuda_kernels/bn_leaky_relu.h"

namespace zsq::generator {

at::Tensor first_weights(at::IntArrayRef shape, std::int64_t fan_in, const at::Generator& stream) {
  const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
  return at::empty(shape).uniform_(-bound, bound, stream);
}

at::Tensor projected_map(const at::Tensor& latents, const at::Tensor& weight,
                         const at::Tensor& bias, const std::array<std::int64_t, 2>& map) {
  const auto [height, width] = map;
  return at::linear(latents, weight, bias)
      .view({-1, height, width, weight.size(0) / (height * width)})
      .permute({0, 3, 1, 2});
}

at::Tensor normalised_pixels(const at::Tensor& x, const std::array<std::int64_t, 2>& sides,
                             const cuda_kernels::BatchPart& part, double mean, double deviation) {
  constexpr double kNoSlope = 1, kEps = 1e-5;
  const auto [height, width] = sides;
  const auto middle =
      x.narrow(2, (x.size(2) - height) / 2, height).narrow(3, (x.size(3) - width) / 2, width);
  const auto gamma = at::full({x.size(1)}, deviation, x.options());
  return cuda_kernels::bn_leaky_relu(at::tanh(middle), gamma, at::full_like(gamma, mean), kEps,
                                     kNoSlope, part);
}

}  // namespace zsq::generator
