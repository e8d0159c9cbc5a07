// SPDX-License-Identifier: Apache-2.0
#include "train/best_state.h"

#include <gtest/gtest.h>

#include "tests/support/quantized.h"
#include "tests/train/tiny.h"
#include "train/agreement.h"

namespace zsq::train {
namespace {

// A student that answers as its teacher does, or nearly, before it is trained.
QuantOptions eight_bits() {
  auto options = four_bits();
  options.weights.num_bits = options.activations.num_bits = 8;
  return options;
}

TEST(Checks, EndWithTheStartWhereTrainingDestroysTheStudent) {
  Tiny untouched(1, eight_bits()), wrecked(1, eight_bits()), unchecked(1, eight_bits());
  for (auto* tiny : {&untouched, &wrecked, &unchecked}) {
    tiny->teacher.parameters.at("fc.weight").mul_(5);
    tiny->student = test::quantized(tiny->teacher, eight_bits());
    tiny->options.milestones = {};  // one warm-up for all
    tiny->options.validation_images = 40;
    tiny->options.learnable_scales = LearnableScales::all;
  }
  for (auto* tiny : {&wrecked, &unchecked}) {
    tiny->options.affine_lr = 10;
    tiny->options.scale_lr = 1;
    tiny->options.crossing_rate = 0.9;
  }
  untouched.options.iterations = 3;  // all of them warm-up: calibrated, not trained
  untouched.options.warmup = 1;
  wrecked.options.validation_checks = 3;
  Observer silent;
  run(untouched.job(), silent);
  run(unchecked.job(), silent);
  Watch watch;
  const auto kept = run(wrecked.job(), watch).kept;
  ASSERT_TRUE(kept.has_value());
  EXPECT_EQ(kept->iteration, 3);
  EXPECT_EQ(kept->checks, 4);
  EXPECT_EQ(kept->kept.kl, kept->start.kl);
  EXPECT_GT(kept->last.kl, 10 * kept->start.kl);
  EXPECT_EQ(kept->kept.images, 40);
  expect_equal(wrecked.student.parameters, untouched.student.parameters);
  EXPECT_FALSE(
      unchecked.student.parameters.at("fc.bias").equal(untouched.student.parameters.at("fc.bias")));
  EXPECT_TRUE(watch.messages.back().starts_with("best checkpoint: iteration 3 of 10"))
      << watch.messages.back();
}

// Eight steps, each too large by far, and a check after each second one.
TEST(Checks, GoBackToTheBestAndGoOnWithSmallerRates) {
  const auto end = [](double backtracking, Watch& watch) {
    Tiny tiny(1, eight_bits());
    tiny.teacher.parameters.at("fc.weight").mul_(5);
    tiny.student = test::quantized(tiny.teacher, eight_bits());
    tiny.options.milestones = {};
    tiny.options.iterations = 10;
    tiny.options.warmup = 0.2;
    tiny.options.validation_checks = 4;
    tiny.options.learnable_scales = LearnableScales::all;
    tiny.options.affine_lr = 10;
    tiny.options.scale_lr = 1;
    tiny.options.crossing_rate = 0.9;
    tiny.options.backtracking = backtracking;
    return *run(tiny.job(), watch).kept;
  };
  Watch watch, silent;
  const auto kept = end(1e-3, watch);
  EXPECT_LT(kept.last.kl, 0.01 * end(1, silent).last.kl);
  for (std::int64_t step = 3; step <= 10; ++step) {
    const auto& [name, factor] = watch.seen[static_cast<std::size_t>(step) - 1].details[1];
    EXPECT_EQ(name, "rate_factor");
    const auto before = watch.measured.begin() + 1;  // the first is the start
    std::int64_t backwards = 0;
    double best = watch.measured.front().metrics.front().second;
    for (auto check = before; check != watch.measured.end() && check->step < step; ++check) {
      const double kl = check->metrics.front().second;
      if (!(kl < best)) ++backwards;
      best = std::min(best, kl);
    }
    EXPECT_DOUBLE_EQ(factor, std::pow(1e-3, backwards)) << step;
    EXPECT_GE(backwards, step > 4 ? 1 : 0);
  }
}

TEST(Checks, ReportTheKlThatTheStudentEndsWith) {
  auto coarse = four_bits();
  coarse.weights.num_bits = 2;
  Tiny tiny(1, coarse), unchecked(1, coarse);
  for (auto* t : {&tiny, &unchecked}) {
    t->teacher.parameters.at("fc.weight").mul_(5);
    t->student = test::quantized(t->teacher, coarse);
    t->options.iterations = 60;
    t->options.affine_lr = 1e-3;
  }
  tiny.options.validation_checks = 6;
  const auto images = at::randn({50, 3, 8, 8}, at::detail::createCPUGenerator(3), at::kFloat)
                          .contiguous(at::MemoryFormat::ChannelsLast);
  auto job = tiny.job();
  job.held_out = images;
  Watch watch;
  Observer silent;
  const auto kept = run(job, watch).kept;
  ASSERT_TRUE(kept.has_value());
  ASSERT_EQ(std::ssize(watch.measured), kept->checks);
  EXPECT_EQ(watch.measured.front().metrics.front(),
            (std::pair<std::string, double>{"kl", kept->start.kl}));
  EXPECT_EQ(watch.measured.back().metrics.front().second, kept->last.kl);
  EXPECT_EQ(watch.measured.back().step, 60);
  EXPECT_LT(kept->kept.kl, kept->start.kl);
  EXPECT_LE(kept->kept.kl, kept->last.kl);
  const auto now = measure_agreement(tiny.teacher, tiny.student, images);
  EXPECT_EQ(now.kl, kept->kept.kl);
  EXPECT_EQ(now.agreement, kept->kept.agreement);
  // Measuring is no part of the training.
  run(unchecked.job(), silent);
  const auto last = measure_agreement(unchecked.teacher, unchecked.student, images);
  EXPECT_EQ(last.kl, kept->last.kl);
}

}  // namespace
}  // namespace zsq::train
