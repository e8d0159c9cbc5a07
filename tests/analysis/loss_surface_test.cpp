// SPDX-License-Identifier: Apache-2.0
#include "analysis/loss_surface.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace zsq::analysis {
namespace {

TEST(FilterNormalisedDirection, HasTheNormsOfTheFilters) {
  const auto random = at::detail::createCPUGenerator(2);
  const Tensors weights{at::randn({4, 3, 3, 3}, random, at::kFloat),
                        at::randn({5, 8}, random, at::kFloat).mul(10),
                        at::randn({7}, random, at::kFloat)};
  const Tensors direction = filter_normalised_direction(weights, 9);
  for (const std::size_t i : {0u, 1u}) {
    const auto norms = [](const at::Tensor& x) {
      return x.reshape({x.size(0), -1}).square().sum(1).sqrt();
    };
    EXPECT_TRUE(norms(direction[i]).allclose(norms(weights[i]), 1e-4));
    EXPECT_FALSE(direction[i].allclose(weights[i]));
  }
  EXPECT_EQ(direction[2].abs().sum().item<double>(), 0);
  EXPECT_TRUE(filter_normalised_direction(weights, 9)[0].equal(direction[0]));
  EXPECT_FALSE(filter_normalised_direction(weights, 10)[0].equal(direction[0]));
}

// (w + a u + b v)' (w + a u + b v), by hand.
TEST(LossSurface, OfAQuadratic) {
  const Tensors w{at::tensor({1.0f, 2.0f})}, u{at::tensor({1.0f, 0.0f})},
      v{at::tensor({0.0f, -1.0f})};
  const auto surface = loss_surface(
      [](const Tensors& x) { return x[0].square().sum().item<double>(); }, w, u, v, 0.5, 5);
  EXPECT_EQ(surface.steps, (std::vector<double>{-0.5, -0.25, 0, 0.25, 0.5}));
  for (std::size_t r = 0; r < 5; ++r)
    for (std::size_t c = 0; c < 5; ++c) {
      const double a = surface.steps[c], b = surface.steps[r];
      EXPECT_NEAR(surface.losses[r][c], (1 + a) * (1 + a) + (2 - b) * (2 - b), 1e-5);
    }
  EXPECT_THROW(loss_surface([](const Tensors&) { return 0.0; }, w, u, v, 1, 4), Error);
}

}  // namespace
}  // namespace zsq::analysis
