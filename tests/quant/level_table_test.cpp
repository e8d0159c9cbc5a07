// SPDX-License-Identifier: Apache-2.0
#include "quant/level_table.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/unique_dim.h>
#include <gtest/gtest.h>

#include <cmath>

#include "models/execute.h"
#include "quant/calibration/weight_grid.h"
#include "quant/fold_batch_norm.h"
#include "tests/support/network_builder.h"

namespace zsq::quant {
namespace {

double squared_error(const at::Tensor& a, const at::Tensor& b) {
  return a.sub(b).square().sum().item<double>();
}

at::Tensor values_of(const std::vector<float>& levels) { return at::tensor(levels); }

TEST(FixedLevels, AreAscendingHoldZeroAndFitIntoSevenBits) {
  for (std::size_t t = 0; t < EnumNames<LevelTable>::names.size(); ++t)
    for (const std::int64_t bits : {3, 4}) {
      const auto levels = fixed_levels(static_cast<LevelTable>(t), bits);
      if (levels.empty()) continue;
      EXPECT_LE(levels.size(), std::size_t{1} << bits);
      EXPECT_TRUE(std::is_sorted(levels.begin(), levels.end()));
      EXPECT_TRUE(std::count(levels.begin(), levels.end(), 0.0f));
      EXPECT_LE(std::max(levels.back(), -levels.front()), kLargestLevel);
    }
  EXPECT_EQ(fixed_levels(LevelTable::power_of_two, 4).back(), 64);
  EXPECT_TRUE(fixed_levels(LevelTable::fp4, 3).empty());
}

// Each row is made of one table's levels: that table, at that scale, loses nothing.
TEST(ChooseLevels, FindTheTableThatARowWasMadeOf) {
  const auto fp4 = values_of(fixed_levels(LevelTable::fp4, 4));
  const auto flint = values_of(fixed_levels(LevelTable::flint, 4));
  const auto rows = at::cat({fp4.mul(0.25 / 1.01), flint.mul(0.5 / 1.01)}).view({2, 15});
  const auto grids = choose_levels(rows, 4, {LevelTable::flint, LevelTable::fp4});
  EXPECT_TRUE(grids.levels[0].slice(0, 0, 15).equal(fp4));
  EXPECT_TRUE(grids.levels[1].slice(0, 0, 15).equal(flint));
  EXPECT_LT(squared_error(round_to_levels(rows, grids, false), rows),
            1e-3 * rows.square().sum().item<double>());
}

// With the uniform grid among the choices nothing is lost, and with normal weights much is gained.
TEST(ChooseLevels, AreNeverWorseThanTheUniformGrid) {
  const auto rows = test::normal({6, 400}, 3);
  const auto uniform = mse_grid(rows, weight_spec(4, false, Mode::deploy));
  const auto on_grid = cuda_kernels::fake_quant(rows, uniform.scale, uniform.zero_point, -8, 7,
                                                cuda_kernels::Surrogate::clipped);
  const auto error = [&](const std::vector<LevelTable>& tables) {
    return squared_error(round_to_levels(rows, choose_levels(rows, 4, tables), false), rows);
  };
  EXPECT_NEAR(error({LevelTable::integer}), squared_error(on_grid, rows), 1e-2);
  EXPECT_LE(error({LevelTable::integer, LevelTable::power_of_two}), error({LevelTable::integer}));
  EXPECT_LT(error({LevelTable::integer, LevelTable::learned}), 0.95 * error({LevelTable::integer}));
  EXPECT_LT(error({LevelTable::normal}), error({LevelTable::power_of_two}));
}

TEST(DistinctLevels, GiveEveryChannelItsTable) {
  const auto levels = at::tensor({-2.f, 0.f, 4.f, -1.f, 0.f, 1.f, -2.f, 0.f, 4.f}).view({3, 3});
  const auto tables = distinct_levels(levels);
  EXPECT_EQ(tables.levels.size(0), 2);
  EXPECT_TRUE(tables.levels.index_select(0, tables.index).equal(levels));
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

// What the student computes with, what is folded and what is exported: 2^bits integers a channel.
TEST(LevelTables, AStudentHasTheLevelsOfItsTables) {
  for (const auto rounding : {WeightRounding::nearest, WeightRounding::squant}) {
    QuantOptions options;
    options.weights.rounding = rounding;
    options.weights.level_tables = {LevelTable::integer, LevelTable::fp4, LevelTable::learned};
    const auto student = insert_quantizers(test::residual_network(), options);
    int tables = 0;
    for (const auto& site : weight_sites(student)) {
      const auto grids = level_grids(*site.op, student.parameters);
      EXPECT_EQ(grids.levels.defined(), site.op->spec().num_bits == 4);
      if (!grids.levels.defined()) continue;
      ++tables;
      const auto& latent = student.parameters.at(site.parameter);
      EXPECT_TRUE(site.op->forward({latent}, student.parameters).allclose(latent, 1e-6, 1e-7));
      const auto integers = integer_weights(student, site);
      EXPECT_EQ(integers.zero_point.abs().max().item<int>(), 0);
      EXPECT_LE(integers.codes.abs().max().item<int>(), kLargestLevel);
      for (std::int64_t c = 0; c < latent.size(0); ++c)
        EXPECT_LE(std::get<0>(at::unique_dim(integers.codes[c].flatten(), 0)).numel(), 16);
    }
    EXPECT_GT(tables, 1);
  }
}

}  // namespace
}  // namespace zsq::quant
