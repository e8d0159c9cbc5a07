// SPDX-License-Identifier: Apache-2.0
#include "train/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace zsq::train {
namespace {

TEST(RateFactor, DropsAtEachMilestone) {
  const TrainOptions options;  // 0.25, 0.5, 0.75 by 0.1
  EXPECT_DOUBLE_EQ(rate_factor(options, 0), 1);
  EXPECT_DOUBLE_EQ(rate_factor(options, 0.2499), 1);
  EXPECT_DOUBLE_EQ(rate_factor(options, 0.25), 0.1);
  EXPECT_NEAR(rate_factor(options, 0.6), 0.01, 1e-12);
  EXPECT_NEAR(rate_factor(options, 1), 0.001, 1e-12);
  TrainOptions constant;
  constant.milestones.clear();
  EXPECT_DOUBLE_EQ(rate_factor(constant, 0.9), 1);
}

TEST(WarmupIterations, RoundsUp) {
  TrainOptions options;
  options.warmup = 0.01;
  EXPECT_EQ(warmup_iterations(options, 80000), 800);
  EXPECT_EQ(warmup_iterations(options, 101), 2);
  options.warmup = 0;
  EXPECT_EQ(warmup_iterations(options, 10), 0);
  options.warmup = 1;
  EXPECT_EQ(warmup_iterations(options, 10), 10);
}

TEST(Pace, WithoutABudgetTheRunIsAsLongAsAsked) {
  TrainOptions options;
  options.iterations = 123;
  Pace pace(options, 0);
  pace.finetune_took(1e9);
  EXPECT_EQ(pace.total(0, 1e9), 123);
}

TEST(Pace, SolvesForTheLengthThatFillsTheBudget) {
  TrainOptions options;
  options.warmup = 0.1;
  Pace pace(options, 105);
  pace.warmup_took(1);
  pace.finetune_took(2);
  pace.reserve(10);
  EXPECT_EQ(pace.total(0, 0), 50);  // 0.1 * 50 * 1 + 0.9 * 50 * 2 = 95 = 105 - 10
  EXPECT_EQ(pace.total(5, 5), 50);
  pace.reserve(0);
  EXPECT_EQ(pace.total(20, 55), 45);   // 50 s left, 2 s each
  EXPECT_EQ(pace.total(20, 104), 20);  // none fits any more
  options.iterations = 30;
  Pace capped(options, 1000);
  capped.finetune_took(1);
  EXPECT_EQ(capped.total(0, 0), 30);
}

// Iterations become three times slower half way: the run is still not longer than the budget and
// the warm-up takes its share of it.
TEST(Pace, FollowsAMachineThatSlowsDown) {
  TrainOptions options;
  options.warmup = 0.2;
  const double budget = 300;
  Pace pace(options, budget);
  pace.warmup_took(1);
  pace.finetune_took(2);
  double elapsed = 0;
  std::int64_t done = 0, warm = 0;
  while (done < pace.total(done, elapsed)) {
    const double slow = elapsed > budget / 2 ? 3 : 1;
    const bool warming = done < warmup_iterations(options, pace.total(done, elapsed));
    const double seconds = slow * (warming ? 1 : 2);
    warming ? pace.warmup_took(seconds) : pace.finetune_took(seconds);
    elapsed += seconds;
    warm += warming;
    ++done;
  }
  EXPECT_LE(elapsed, budget);
  EXPECT_GT(elapsed, budget - 7);
  EXPECT_NEAR(static_cast<double>(warm), 0.2 * 300 / 1.8, 2);
}

}  // namespace
}  // namespace zsq::train
