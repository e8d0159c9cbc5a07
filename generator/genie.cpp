// SPDX-License-Identifier: Apache-2.0
#include "generator/genie.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "core/seed.h"
#include "cuda_kernels/bn_leaky_relu.h"
#include "cuda_kernels/upsampled_conv.h"
#include "generator/layers.h"

namespace zsq::generator {
namespace {

constexpr std::int64_t kGenieWide = 128, kGenieNarrow = 64;  // channels

}  // namespace

GenieGenerator::GenieGenerator(const std::array<std::int64_t, 3>& image, at::Device device,
                               std::uint64_t seed, std::uint64_t number)
    : image_{image[1], image[2]}, map_{(image_[0] + 3) / 4, (image_[1] + 3) / 4} {
  const auto add = [&](const std::string& name, const at::Tensor& value) {
    store_.set(name, value.to(device).requires_grad_(true));
  };
  const auto uniform = [&](const std::string& name, at::IntArrayRef shape, std::int64_t fan_in) {
    const auto stream = at::detail::createCPUGenerator(stream_seed(seed, "genie." + name, number));
    add(name, first_weights(shape, fan_in, stream));
  };
  const auto norm = [&](const std::string& name, std::int64_t channels) {
    add(name + ".gamma", at::ones({channels}));
    add(name + ".beta", at::zeros({channels}));
  };
  const auto projected = map_[0] * map_[1] * kGenieWide;
  uniform("project.weight", {projected, kLatentWidth}, kLatentWidth);
  uniform("project.bias", {projected}, kLatentWidth);
  norm("norm0", kGenieWide);
  // A bias before BatchNorm would change nothing.
  uniform("conv1.weight", {kGenieNarrow, kGenieWide, 3, 3}, kGenieWide * 9);
  norm("norm1", kGenieNarrow);
  uniform("conv2.weight", {image[0], kGenieNarrow, 3, 3}, kGenieNarrow * 9);
  uniform("conv2.bias", {image[0]}, kGenieNarrow * 9);
}

at::Tensor GenieGenerator::forward(const at::Tensor& latents, Precision precision) const {
  constexpr double kSlope = 0.2, kNoSlope = 1, kEps = 1e-5;
  const auto work = precision == Precision::bf16 ? at::kBFloat16 : at::kFloat;
  const auto normalised = [&](const at::Tensor& x, const std::string& name, double slope) {
    return cuda_kernels::bn_leaky_relu(x, store_.at(name + ".gamma"), store_.at(name + ".beta"),
                                       kEps, slope);
  };
  auto x = projected_map(latents.to(work), store_.at("project.weight").to(work),
                         store_.at("project.bias").to(work), map_);
  x = normalised(x, "norm0", kNoSlope);
  x = normalised(cuda_kernels::upsampled_conv(x, store_.at("conv1.weight")), "norm1", kSlope);
  x = cuda_kernels::upsampled_conv(x, store_.at("conv2.weight")).to(at::kFloat);
  return normalised_pixels(x.add(store_.at("conv2.bias").view({-1, 1, 1})), image_);
}

std::vector<std::pair<std::string, at::Tensor>> GenieGenerator::parameters() const {
  std::vector<std::pair<std::string, at::Tensor>> all;
  for (const auto& name : store_.names()) all.emplace_back(name, store_.at(name));
  return all;
}

}  // namespace zsq::generator
