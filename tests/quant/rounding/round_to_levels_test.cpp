// SPDX-License-Identifier: Apache-2.0
#include "quant/rounding/round_to_levels.h"

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "quant/choose_levels.h"
#include "tests/support/network_builder.h"

namespace zsq::quant {
namespace {

double squared_error(const at::Tensor& a, const at::Tensor& b) {
  return a.sub(b).square().sum().item<double>();
}

TEST(RoundToLevels, GivesTheNearestLevelOrItsNeighbour) {
  const auto weight = test::normal({4, 3, 3, 3}, 5);
  const auto grids = choose_levels(weight.flatten(1), 4, {LevelTable::normal});
  const auto nearest = round_to_levels(weight, grids, false);
  const auto balanced = round_to_levels(weight, grids, true);
  for (std::int64_t c = 0; c < 4; ++c) {
    const auto levels = grids.levels[c].mul(grids.scale[c]);
    const auto distances = weight[c].flatten().unsqueeze(1).sub(levels).abs();
    const auto least = std::get<0>(distances.min(1));
    EXPECT_LT(nearest[c].sub(weight[c]).abs().flatten().sub(least).abs().max().item<float>(), 1e-6);
    // Sums of a kernel's errors come within half of the widest gap.
    const auto gap = levels.diff().max().item<float>();
    const auto sums = [&](const at::Tensor& w) { return w[c].sub(weight[c]).sum({1, 2}).abs(); };
    EXPECT_LE(sums(balanced).max().item<float>(), gap);
    EXPECT_LE(balanced[c].sub(weight[c]).sum().abs().item<float>(), gap);
    EXPECT_LT(squared_error(nearest[c], weight[c]), squared_error(balanced[c], weight[c]) + 1e-6);
  }
}

}  // namespace
}  // namespace zsq::quant
