// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report/quality.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace zsq::pipeline {
namespace {

TEST(Quality, BetterMeansASmallerGeometricMeanAndOnEachKindThatNoneIsWorse) {
  const auto results = [](double a, double b) {
    return std::vector<SyntheticResult>{{"dead_leaves", 4, a, 1}, {"optimised", 4, b, 1}};
  };
  EXPECT_NEAR(pool(results(1, 4)).divergence, 2, 1e-12);
  EXPECT_TRUE(is_better(results(1, 3.9), results(2, 2)));
  EXPECT_TRUE(is_better(results(3.9, 1), results(2, 2)));
  EXPECT_FALSE(is_better(results(1, 4.1), results(2, 2)));
  EXPECT_TRUE(is_better_on_each(results(1, 1), results(2, 2)));
  EXPECT_TRUE(is_better_on_each(results(1, 2), results(2, 2)));
  EXPECT_TRUE(is_better_on_each(results(1, 2.09), results(2, 2)));
  EXPECT_FALSE(is_better_on_each(results(1, 2.11), results(2, 2)));
  EXPECT_FALSE(is_better_on_each(results(2.11, 1), results(2, 2)));
  EXPECT_FALSE(is_better_on_each(results(1.95, 2.09), results(2, 2)));
  for (const auto rule : {is_better, is_better_on_each}) {
    EXPECT_FALSE(rule(results(2, 2), results(2, 2)));
    EXPECT_FALSE(rule(results(std::nan(""), 1), results(2, 2)));
  }
}

}  // namespace
}  // namespace zsq::pipeline
