// SPDX-License-Identifier: Apache-2.0
// The generator of Genie-D (arXiv 2212.04780 and its published code), which knows no classes:
// linear from the latent to 128 x H/4 x W/4; BatchNorm; nearest x2, convolution 3x3 to 64 channels,
// BatchNorm, leaky ReLU 0.2; nearest x2, convolution 3x3 to the image; tanh; BatchNorm without
// gamma and beta. Sides that are no multiple of 4: the next larger ones, cropped to the middle.
#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "models/graph.h"
#include "models/precision.h"

namespace zsq::generator {

class GenieGenerator {
 public:
  static constexpr std::int64_t kLatentWidth = 256;

  // For images of shape `image` [C, H, W]. Weights and biases are uniform within 1 / sqrt(fan in),
  // gamma 1 and beta 0; they are of stream_seed(seed, ..., number), live on `device` and require a
  // gradient.
  GenieGenerator(const std::array<std::int64_t, 3>& image, at::Device device, std::uint64_t seed,
                 std::uint64_t number);

  // latents f32 [N, kLatentWidth] -> f32 [N, C, H, W], channels_last. An image depends on the whole
  // batch, whose moments BatchNorm uses. The layers work in `precision`.
  at::Tensor forward(const at::Tensor& latents, Precision precision = Precision::fp32) const;

  std::vector<std::pair<std::string, at::Tensor>> parameters() const;

 private:
  std::array<std::int64_t, 2> image_, map_;  // sides; of the smallest map
  models::ParameterStore store_;
};

}  // namespace zsq::generator
