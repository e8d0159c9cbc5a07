// SPDX-License-Identifier: Apache-2.0
#include "pipeline/run/pace.h"

#include "tests/pipeline/run/plan_fixture.h"

namespace zsq::pipeline {
namespace {

// Two measurements of one thing would differ, so equal figures are of one.
TEST_F(PlanTest, PaceIsMeasuredInThePrecisionOfTheStage) {
  const Pace plain = measure_pace(make_run());
  EXPECT_GT(plain.in_fp32, 0);
  EXPECT_EQ(plain.of_images, plain.in_fp32);
  EXPECT_EQ(plain.of_learning, plain.in_fp32);

  options_.recipe.images.precision = Precision::bf16;
  const Pace images = measure_pace(make_run());
  EXPECT_GT(images.of_images, 0);
  EXPECT_NE(images.of_images, images.in_fp32);
  EXPECT_EQ(images.of_learning, images.in_fp32);

  options_.recipe.images.precision = Precision::fp32;
  options_.recipe.finetune.precision = Precision::bf16;
  const Pace learning = measure_pace(make_run());
  EXPECT_EQ(learning.of_images, learning.in_fp32);
  EXPECT_NE(learning.of_learning, learning.in_fp32);
}

TEST_F(PlanTest, PaceOfBatchesIsOfAsManyImages) {
  constexpr double kAnyIsShort = 1e9, kNoneIsShort = 0;
  options_.recipe.finetune.batch_size = 8;
  const Pace few = measure_pace(make_run(), kAnyIsShort);
  EXPECT_EQ(few.of_batches, few.of_learning);

  options_.recipe.finetune.batch_size = 64;
  const Pace many = measure_pace(make_run(), kAnyIsShort);
  EXPECT_GT(many.of_batches, 0);
  EXPECT_NE(many.of_batches, many.of_learning);
  const Pace slow = measure_pace(make_run(), kNoneIsShort);
  EXPECT_EQ(slow.of_batches, slow.of_learning);
}

}  // namespace
}  // namespace zsq::pipeline
