// SPDX-License-Identifier: Apache-2.0
#include "train/images/generator_images.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "models/execute.h"
#include "tests/train/images/collect.h"
#include "tests/train/tiny.h"

namespace zsq::train::generator_images_test {
namespace {

ImageJob job_of(const models::Model& teacher, std::int64_t steps, std::int64_t images) {
  ImageJob job{teacher, {}, images, 3};
  job.options.source = ImageSource::generator;
  job.options.batch_size = 16;
  job.options.steps = steps;
  return job;
}

Collected make(const ImageJob& job) {
  Observer silent;
  return collect(make_generator_images, job, silent);
}

TEST(GeneratorImages, TheTeacherComesToSeeTheSampledLabels) {
  const auto teacher = tiny_teacher();
  const auto start = make(job_of(teacher, 0, 64)).report;
  const auto trained = make(job_of(teacher, 120, 64)).report;
  EXPECT_EQ(trained.steps, 120);
  EXPECT_EQ(trained.images, 64);
  EXPECT_LT(trained.cross_entropy, 0.9 * start.cross_entropy);
}

TEST(GeneratorImages, AnImageDoesNotDependOnHowManyThereAre) {
  const auto teacher = tiny_teacher();
  const auto few = make(job_of(teacher, 3, 20)), many = make(job_of(teacher, 3, 40));
  EXPECT_EQ(few.images.sizes(), at::IntArrayRef({20, 3, 8, 8}));
  EXPECT_TRUE(few.images.equal(many.images.narrow(0, 0, 20)));
  EXPECT_TRUE(few.labels.equal(many.labels.narrow(0, 0, 20)));
  const auto logits = models::execute(teacher.graph, teacher.parameters, few.images);
  EXPECT_LT(logits.sub(few.logits).abs().max().item<double>(), 1e-5);
  auto other = job_of(teacher, 3, 20);
  other.seed = 4;
  EXPECT_FALSE(few.images.equal(make(other).images));
}

TEST(GeneratorImages, PixelsAreHeldToTheirRange) {
  const auto teacher = tiny_teacher();
  auto job = job_of(teacher, 0, 16);
  job.lowest = at::full({3}, -0.25);
  job.highest = at::full({3}, 0.5);
  const auto images = make(job).images;
  EXPECT_EQ(images.min().item<float>(), -0.25f);
  EXPECT_EQ(images.max().item<float>(), 0.5f);
}

// Without a mixture every image is of its label's class alone; of several the first one counts.
TEST(GeneratorImages, ShareOfSuperposedImagesIsTheGenerators) {
  const auto teacher = tiny_teacher();
  auto job = job_of(teacher, 2, 32);
  const auto mixed = make(job);
  const auto share = mixed.second_labels.ge(0).to(at::kFloat).mean().item<double>();
  EXPECT_NEAR(share, 0.4, 0.3);  // of 32 draws, 3.5 standard deviations
  EXPECT_FALSE(mixed.second_labels.eq(mixed.labels).any().item<bool>());
  job.generator.superposed_share = 0;
  const auto single = make(job);
  EXPECT_FALSE(single.images.equal(mixed.images));
  EXPECT_TRUE(single.second_labels.eq(-1).all().item<bool>());
  job.generator.superposed_share = 1;
  EXPECT_TRUE(make(job).second_labels.ge(0).all().item<bool>());
}

TEST(GeneratorImages, StopsWhenAsked) {
  const auto teacher = tiny_teacher();
  Watch watch;
  watch.stop_after = 2;  // reports, of 16 iterations each
  try {
    make_generator_images(job_of(teacher, 100, 16), watch, [](const MadeImages&) {});
    ADD_FAILURE() << "was not stopped";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::stopped);
    EXPECT_NE(std::string(error.what()).find("after 32 of 100"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace zsq::train::generator_images_test
