// SPDX-License-Identifier: Apache-2.0
#include "analysis/training.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "models/execute.h"
#include "tests/train/tiny.h"

namespace zsq::analysis {
namespace {

// What is looked at is what a run does: the same weights to the last bit.
TEST(Training, EndsWhereTheTrainerEnds) {
  train::Tiny tiny;
  Training training({tiny.teacher, train::four_bits(), {}, tiny.options, 1});
  Observer observer;
  std::vector<std::int64_t> steps;
  training.run(observer, [&](std::int64_t step, std::int64_t total, const Sample& sample) {
    steps.push_back(step);
    EXPECT_EQ(total, 7);
    EXPECT_EQ(sample.images.size(0), 8);
    EXPECT_EQ(sample.targets.size(1), 4);
    EXPECT_TRUE(sample.logits.equal(
                    models::execute(tiny.teacher.graph, tiny.teacher.parameters, sample.images)) ||
                sample.logits.allclose(
                    models::execute(tiny.teacher.graph, tiny.teacher.parameters, sample.images),
                    1e-4, 1e-4));
  });
  EXPECT_EQ(steps, (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6}));
  train::run(tiny.job(), observer);
  train::expect_equal(training.student().parameters, tiny.student.parameters);
}

TEST(Training, StopsWhereItIsAsked) {
  train::Tiny tiny;
  Training training({tiny.teacher, train::four_bits(), {}, tiny.options, 1});
  train::Watch watch;
  watch.stop_after = 4;
  EXPECT_THROW(training.run(watch), Error);
  EXPECT_EQ(watch.seen.size(), 4u);
}

TEST(Training, HeldOutImagesAreOnesThatNoStepSaw) {
  train::Tiny tiny;
  const Training training({tiny.teacher, train::four_bits(), {}, tiny.options, 1});
  const Sample sample = training.held_out(5);
  EXPECT_EQ(sample.images.size(0), 5);
  EXPECT_TRUE(sample.images.equal(training.held_out(5).images));
  EXPECT_NEAR(sample.targets.sum().item<double>(), 5, 1e-4);
}

}  // namespace
}  // namespace zsq::analysis
