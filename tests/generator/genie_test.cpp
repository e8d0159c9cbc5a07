// SPDX-License-Identifier: Apache-2.0
#include "generator/genie.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/support/seed_each_test.h"

namespace zsq::generator {
namespace {

std::map<std::string, at::Tensor> named(const GenieGenerator& generator) {
  std::map<std::string, at::Tensor> all;
  for (const auto& [name, value] : generator.parameters()) all[name] = value;
  return all;
}

// The published network, written with ATen's own layers.
at::Tensor published(std::map<std::string, at::Tensor> p, const at::Tensor& latents,
                     std::int64_t side) {
  const auto norm = [](const at::Tensor& x, const at::Tensor& gamma, const at::Tensor& beta) {
    return at::batch_norm(x, gamma, beta, {}, {}, /*training=*/true, 0.1, 1e-5, false);
  };
  const auto twice = [](const at::Tensor& x) {
    return at::upsample_nearest2d(x, {2 * x.size(2), 2 * x.size(3)});
  };
  auto x = at::linear(latents, p["project.weight"], p["project.bias"])
               .view({-1, side / 4, side / 4, 128})
               .permute({0, 3, 1, 2})
               .contiguous();
  x = norm(x, p["norm0.gamma"], p["norm0.beta"]);
  x = at::conv2d(twice(x), p["conv1.weight"], {}, 1, 1);
  x = at::leaky_relu(norm(x, p["norm1.gamma"], p["norm1.beta"]), 0.2);
  x = at::conv2d(twice(x), p["conv2.weight"], p["conv2.bias"], 1, 1);
  return norm(at::tanh(x), {}, {});
}

TEST(GenieGenerator, IsThePublishedNetwork) {
  const GenieGenerator generator({3, 16, 16}, at::kCPU, 1, 0);
  const auto latents = at::randn({4, GenieGenerator::kLatentWidth});
  const auto images = generator.forward(latents),
             expected = published(named(generator), latents, 16);
  EXPECT_LT((images - expected).abs().max().item<double>(), 1e-4);
  EXPECT_LT((generator.forward(latents, Precision::bf16) - expected).abs().mean().item<double>(),
            0.05);
}

TEST(GenieGenerator, SidesNeedNoMultipleOfFour) {
  const GenieGenerator generator({1, 7, 18}, at::kCPU, 1, 0);
  const auto images = generator.forward(at::randn({2, GenieGenerator::kLatentWidth}));
  EXPECT_EQ(images.sizes(), at::IntArrayRef({2, 1, 7, 18}));
}

TEST(GenieGenerator, SeedAndNumberDecideTheWeights) {
  const auto weight = [](std::uint64_t seed, std::uint64_t number) {
    return named(GenieGenerator({3, 8, 8}, at::kCPU, seed, number)).at("conv1.weight");
  };
  EXPECT_TRUE(weight(1, 0).equal(weight(1, 0)));
  EXPECT_FALSE(weight(1, 0).equal(weight(1, 1)));
  EXPECT_FALSE(weight(1, 0).equal(weight(2, 0)));
  EXPECT_LE(weight(1, 0).abs().max().item<double>(), 1 / std::sqrt(128.0 * 9));
}

}  // namespace
}  // namespace zsq::generator
