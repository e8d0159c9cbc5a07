// SPDX-License-Identifier: Apache-2.0
#include "quant/rounding/round_to_levels.h"

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "quant/choose_levels.h"
#include "tests/support/network_builder.h"

namespace zsq::quant::round_to_levels_test {
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

// Levels -4, 0, 4, 4: a weight stays if its nearest level is the rounded one, else it goes to that
// level's cell, whose ends are halves of gaps less a 64th.
TEST(InsideCells, KeepWhatIsInsideAndMoveTheRest) {
  const LevelGrids grids{at::tensor({0.5f}), at::tensor({-4.f, 0.f, 4.f, 4.f}).view({1, 4})};
  const auto weight = at::tensor({-9.f, -0.9f, 0.3f, 0.7f, 9.f, 0.7f, 0.7f}).view({1, 7});
  const auto rounded = at::tensor({-2.f, 0.f, 0.f, 2.f, 2.f, -2.f, 2.f}).view({1, 7});
  const float inside = 2 * (0.5f - 1 / 64.f);
  const auto expected = at::tensor({-9.f, -0.9f, 0.3f, 2 - inside, 9.f, -2 + inside, 2 - inside});
  const auto got = inside_cells(weight, rounded, grids);
  EXPECT_TRUE(got[0].allclose(expected, 1e-6, 1e-6)) << got;
}

}  // namespace
}  // namespace zsq::quant::round_to_levels_test
