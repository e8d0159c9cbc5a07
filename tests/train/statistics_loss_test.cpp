// SPDX-License-Identifier: Apache-2.0
#include "train/statistics_loss.h"

#include <gtest/gtest.h>

#include "tests/train/tiny.h"
#include "train/parameters.h"
#include "train/step.h"

namespace zsq::train {
namespace {

TEST(StatisticsLoss, IsTheOneThatTheOptionsName) {
  const auto teacher = tiny_teacher();
  const TeacherPass pass(teacher.graph, teacher.parameters);
  const auto moments = pass(at::randn({4, 3, 8, 8})).moments;
  const auto running = running_moments(teacher);
  using Kind = BatchNormStatistics;
  EXPECT_TRUE(
      statistics_loss({}, moments, running).equal(losses::batch_norm_statistics(moments, running)));
  EXPECT_TRUE(statistics_loss({Kind::deviations, 0.2, 1.1}, moments, running)
                  .equal(losses::batch_norm_deviations(moments, running, {0.2, 1.1})));
  EXPECT_TRUE(statistics_loss({Kind::normalised, 0.2, 1.1}, moments, running)
                  .equal(losses::normalised_batch_norm_statistics(moments, running, {0.2, 1.1})));
}

// The loss that a generator step reports, from the images that it hands on.
TEST(StatisticsLoss, OfAGeneratorFollowsItsSettings) {
  Tiny tiny;
  for (const auto kind : {BatchNormStatistics::moments, BatchNormStatistics::normalised}) {
    GeneratorOptions options;
    options.bns_weight = 1;
    options.statistics = {kind, 0.5, 2};
    generator::Generator generator(tiny.teacher, options, 1);
    Step step(tiny.teacher, tiny.student, generator, tiny.options);
    const auto draw = step.draw(0);
    const auto batch = step.generator_step(draw, 1);
    const TeacherPass pass(tiny.teacher.graph, tiny.teacher.parameters);
    const auto [logits, moments] = pass(batch.images);
    const auto expected =
        losses::soft_cross_entropy(logits, draw.targets) +
        statistics_loss(options.statistics, moments, running_moments(tiny.teacher));
    EXPECT_NEAR(batch.loss.item<double>(), expected.item<double>(), 1e-4 * expected.item<double>());
  }
}

}  // namespace
}  // namespace zsq::train
