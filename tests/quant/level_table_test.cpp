// SPDX-License-Identifier: Apache-2.0
#include "quant/level_table.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/unique_dim.h>
#include <gtest/gtest.h>

#include "quant/fold_batch_norm.h"
#include "tests/support/network_builder.h"
#include "tests/support/quantized.h"

namespace zsq::quant {
namespace {

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

TEST(Neighbours, AreTheLevelsAroundANumber) {
  const auto levels = at::tensor({-2.f, 0.f, 4.f, 4.f, -1.f, 0.f, 1.f, 3.f}).view({2, 4});
  const auto x = at::tensor({-3.f, -2.f, -0.5f, 3.9f, 4.f, 5.f, -1.5f, 0.f, 0.2f, 2.f, 3.f, 7.f});
  const auto [below, gap] = neighbours(x.view({2, 3, 2}), levels);
  EXPECT_EQ(below.sizes(), at::IntArrayRef({2, 3, 2}));
  EXPECT_TRUE(below.flatten().equal(
      at::tensor({-2.f, -2.f, -2.f, 0.f, 4.f, 4.f, -1.f, 0.f, 0.f, 1.f, 3.f, 3.f})));
  EXPECT_TRUE(gap.flatten().equal(
      at::tensor({0.f, 2.f, 2.f, 4.f, 0.f, 0.f, 0.f, 1.f, 1.f, 2.f, 0.f, 0.f})));
}

TEST(DistinctLevels, GiveEveryChannelItsTable) {
  const auto levels = at::tensor({-2.f, 0.f, 4.f, -1.f, 0.f, 1.f, -2.f, 0.f, 4.f}).view({3, 3});
  const auto tables = distinct_levels(levels);
  EXPECT_EQ(tables.levels.size(0), 2);
  EXPECT_TRUE(tables.levels.index_select(0, tables.index).equal(levels));
}

// What the student computes with, what is folded and what is exported: 2^bits integers a channel.
TEST(LevelTables, AStudentHasTheLevelsOfItsTables) {
  for (const auto rounding : {WeightRounding::nearest, WeightRounding::squant}) {
    QuantOptions options;
    options.weights.rounding = rounding;
    options.weights.level_tables = {LevelTable::integer, LevelTable::fp4, LevelTable::learned};
    const auto student = test::quantized(test::residual_network(), options);
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
