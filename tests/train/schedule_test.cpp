// SPDX-License-Identifier: Apache-2.0
#include "train/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

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

TEST(Schedule, WithoutABudgetTheScheduleIsThatOfTheIterations) {
  TrainOptions options;
  options.iterations = 101;
  options.warmup = 0.01;
  Schedule schedule(options, 0);
  for (int done = 0; done < 101; ++done) {
    ASSERT_TRUE(schedule.next(1e9 * done));
    EXPECT_EQ(schedule.total(), 101);
    EXPECT_EQ(schedule.share(), done / 101.0);
    EXPECT_EQ(schedule.warming_up(), done < 2);  // 1.01 rounded up
    schedule.warming_up() ? schedule.warmup_took(1) : schedule.finetune_took(2);
  }
  EXPECT_FALSE(schedule.next(0));
  EXPECT_EQ(schedule.share(), 1);
}

TEST(Schedule, SolvesForTheLengthThatFillsTheBudget) {
  TrainOptions options;
  options.warmup = 0.1;
  Schedule schedule(options, 105);
  schedule.rehearsed(1, 2);
  schedule.reserve(10);
  ASSERT_TRUE(schedule.next(0));
  EXPECT_EQ(schedule.total(), 50);  // 0.1 * 50 * 1 + 0.9 * 50 * 2 = 95 = 105 - 10
  Schedule later(options, 105, 20, 0.4);
  later.rehearsed(1, 2);
  ASSERT_TRUE(later.next(55));
  EXPECT_EQ(later.total(), 45);   // 50 s left, 2 s each
  EXPECT_FALSE(later.next(104));  // none fits any more
  options.iterations = 30;
  Schedule capped(options, 1000);
  capped.rehearsed(1, 1);
  ASSERT_TRUE(capped.next(0));
  EXPECT_EQ(capped.total(), 30);
}

// A machine on which an iteration takes 1 s in warm-up and 2 s after it, calibration 10 s and what
// follows the run `after`, all times slowness(now).
struct Simulation {
  std::function<double(double)> slowness = [](double) { return 1; };
  TrainOptions options = {};
  double budget = 600, after = 30, now = 0;
  std::int64_t warm = 0, total = 0;
  double largest_step = 0;  // of the share

  Simulation& run() {
    options.warmup = 0.2;
    Schedule schedule(options, budget);
    schedule.rehearsed(slowness(0), 2 * slowness(0));
    schedule.reserve((10 + after) * slowness(0));
    bool calibrated = false;
    while (schedule.next(now)) {
      const double slow = slowness(now), before = schedule.share();
      if (schedule.warming_up()) {
        EXPECT_FALSE(calibrated) << "back in the warm-up";
        now += slow;
        schedule.warmup_took(slow);
        ++warm;
      } else {
        if (!calibrated) {
          now += 10 * slow;
          schedule.reserve(after * slow);
          calibrated = true;
        }
        now += 2 * slow;
        schedule.finetune_took(2 * slow);
      }
      EXPECT_GE(schedule.share(), before);
      largest_step = std::max(largest_step, schedule.share() - before);
    }
    EXPECT_NEAR(schedule.share(), 1, 1e-9);
    total = schedule.done();
    now += after * slowness(now);
    return *this;
  }
};

TEST(Schedule, FillsTheBudgetAndKeepsTheShares) {
  const auto steady = Simulation{}.run();
  EXPECT_LE(steady.now, 600);
  EXPECT_GT(steady.now, 597);
  EXPECT_NEAR(static_cast<double>(steady.warm), 0.2 * 560 / 1.8, 2);
  EXPECT_NEAR(static_cast<double>(steady.total), 560 / 1.8, 2);
}

// The reserve takes longer on a slower machine too, and training makes room for it.
TEST(Schedule, FollowsAMachineThatSlowsDown) {
  for (const double when : {10, 50, 70, 300, 450}) {
    const auto slowed = Simulation{[&](double now) { return now >= when ? 3.0 : 1.0; }}.run();
    EXPECT_LE(slowed.now, 600 * 1.03) << when;
    EXPECT_GT(slowed.now, 600 * 0.97) << when;
    EXPECT_LT(slowed.largest_step, 0.05) << when;
  }
}

TEST(Schedule, FollowsAMachineThatGetsFaster) {
  const auto faster = Simulation{[](double now) { return now < 100 ? 2.0 : 1.0; }}.run();
  EXPECT_LE(faster.now, 600);
  EXPECT_GT(faster.now, 600 * 0.97);
}

// A busy half minute costs its time, not a piece of the schedule: the plan that it makes for the
// rest is taken back when it is over.
TEST(Schedule, OutlivesABusyHalfMinute) {
  const auto disturbed =
      Simulation{[](double now) { return now > 200 && now < 230 ? 5.0 : 1.0; }}.run();
  EXPECT_LE(disturbed.now, 600);
  EXPECT_GT(disturbed.now, 597);
  EXPECT_NEAR(static_cast<double>(disturbed.total), 560 / 1.8 - 12, 3);  // 30 s instead of 6 s
  EXPECT_LT(disturbed.largest_step, 0.04);
}

// Were what follows as slow as these iterations, there would be no time left for training.
TEST(Schedule, AShortDisturbanceDoesNotEndTheRun) {
  Simulation disturbed{[](double now) { return now > 300 && now < 345 ? 10.0 : 1.0; }};
  disturbed.after = 120;
  disturbed.run();
  EXPECT_LE(disturbed.now, 600);
  EXPECT_GT(disturbed.now, 600 * 0.95);
}

TEST(Schedule, OneIterationThatIsHeldUpDoesNotChangeThePlan) {
  TrainOptions options;
  options.warmup = 0;
  Schedule schedule(options, 100);
  schedule.rehearsed(1, 1);
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(schedule.next(i));
    schedule.finetune_took(1);
  }
  schedule.next(4);
  schedule.finetune_took(6);
  ASSERT_TRUE(schedule.next(10));
  EXPECT_EQ(schedule.total(), 95);  // 5 done, 90 s left
}

}  // namespace
}  // namespace zsq::train
