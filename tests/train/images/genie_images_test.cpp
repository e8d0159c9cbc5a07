// SPDX-License-Identifier: Apache-2.0
#include "train/images/genie_images.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "generator/genie.h"
#include "models/execute.h"
#include "tests/train/images/collect.h"
#include "tests/train/tiny.h"
#include "train/parameters.h"

namespace zsq::train::genie_images_test {
namespace {

ImageJob job_of(const models::Model& teacher, std::int64_t steps, std::int64_t images = 8) {
  ImageJob job{teacher, {}, images, 1};
  job.options.source = ImageSource::genie;
  job.options.batch_size = 8;
  job.options.steps = steps;
  job.options.cross_entropy_weight = 0;
  return job;
}

Collected make(const ImageJob& job) {
  Observer silent;
  return collect(make_genie_images, job, silent);
}

double statistics_of(const models::Model& teacher, const at::Tensor& images) {
  models::Taps taps{models::batch_norm_inputs(teacher.graph), {}};
  models::execute(teacher.graph, teacher.parameters, images, &taps);
  return losses::batch_norm_statistics(losses::batch_moments(taps.values), running_moments(teacher))
      .item<double>();
}

TEST(GenieImages, ComeNearerToTheStatisticsOfTheTeacher) {
  const auto teacher = tiny_teacher();
  const auto start = make(job_of(teacher, 0)), made = make(job_of(teacher, 60));
  EXPECT_LT(statistics_of(teacher, made.images), 0.3 * statistics_of(teacher, start.images));
  EXPECT_NEAR(made.report.batch_norm_statistics, statistics_of(teacher, made.images), 1e-5);
  EXPECT_EQ(made.report.images, 8);
  EXPECT_EQ(start.report.steps, 0);
  EXPECT_EQ(made.report.steps, 60);
  EXPECT_EQ(make(job_of(teacher, 3, 19)).report.steps, 9);  // of three batches
}

// With one of the rates at 0 the other still makes progress, and both together go elsewhere.
TEST(GenieImages, LatentsAndWeightsBothLearn) {
  const auto teacher = tiny_teacher();
  const double start = make(job_of(teacher, 0)).report.batch_norm_statistics;
  auto latents = job_of(teacher, 40), weights = job_of(teacher, 40);
  latents.options.generator_lr = 0;
  weights.options.lr = 0;
  const auto by_latents = make(latents), by_weights = make(weights),
             both = make(job_of(teacher, 40));
  EXPECT_LT(by_latents.report.batch_norm_statistics, 0.9 * start);
  EXPECT_LT(by_weights.report.batch_norm_statistics, 0.9 * start);
  EXPECT_FALSE(both.images.equal(by_latents.images));
  EXPECT_FALSE(both.images.equal(by_weights.images));
  latents.options.lr = 0;
  EXPECT_TRUE(make(latents).images.equal(make(job_of(teacher, 0)).images));
}

TEST(GenieImages, CrossEntropyIsOptional) {
  const auto teacher = tiny_teacher();
  auto job = job_of(teacher, 60);
  const auto without = make(job);
  EXPECT_TRUE(without.labels.equal(without.logits.argmax(1)));
  job.options.cross_entropy_weight = 1;
  job.options.bns_weight = 0;
  const auto with = make(job);
  EXPECT_TRUE(with.labels.equal(bank_labels(8, 4, 1)));
  job.options.steps = 0;
  EXPECT_LT(with.report.cross_entropy, 0.8 * make(job).report.cross_entropy);
}

TEST(GenieImages, EachBatchIsItsOwnAndTheSeedDecides) {
  const auto teacher = tiny_teacher();
  auto job = job_of(teacher, 3, 16);
  const auto a = make(job), b = make(job);
  EXPECT_TRUE(a.images.equal(b.images));
  EXPECT_FALSE(a.images.slice(0, 0, 8).equal(a.images.slice(0, 8, 16)));
  // A batch depends on its number and size, not on how many follow.
  EXPECT_TRUE(make(job_of(teacher, 3, 8)).images.equal(a.images.slice(0, 0, 8)));
  job.seed = 2;
  EXPECT_FALSE(a.images.equal(make(job).images));
}

TEST(GenieImages, PixelsAreHeldToTheirRange) {
  const auto teacher = tiny_teacher();
  auto job = job_of(teacher, 10);
  job.lowest = at::full({3}, -0.5);
  job.highest = at::full({3}, 0.25);
  const auto images = make(job).images;
  EXPECT_EQ(images.min().item<float>(), -0.5f);
  EXPECT_EQ(images.max().item<float>(), 0.25f);
  EXPECT_GT(make(job_of(teacher, 10)).images.max().item<double>(), 0.25);
}

TEST(GenieImages, StopsAndRefuses) {
  const auto teacher = tiny_teacher();
  const auto code_of = [](const ImageJob& job, Observer& observer) {
    try {
      collect(make_genie_images, job, observer);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::internal;
  };
  Watch impatient;
  impatient.stop_after = 3;
  EXPECT_EQ(code_of(job_of(teacher, 5), impatient), ErrorCode::stopped);
  ASSERT_EQ(impatient.seen.size(), 3u);
  EXPECT_EQ(impatient.seen.back().step, 3);
  EXPECT_EQ(impatient.seen.back().total, 5);
  Observer observer;
  EXPECT_EQ(code_of(job_of(teacher, 5, 0), observer), ErrorCode::usage);
  auto broken = tiny_teacher();
  broken.parameters.at("fc.bias").fill_(std::nan(""));
  EXPECT_EQ(code_of(job_of(broken, 5), observer), ErrorCode::numeric_failure);
}

TEST(GenieRateFactor, FallsAsPublished) {
  EXPECT_DOUBLE_EQ(genie_rate_factor(0, 4000), 1);
  EXPECT_DOUBLE_EQ(genie_rate_factor(99, 4000), 1);
  EXPECT_DOUBLE_EQ(genie_rate_factor(100, 4000), 0.95);
  EXPECT_NEAR(genie_rate_factor(3999, 4000), std::pow(0.95, 39), 1e-12);
  EXPECT_NEAR(genie_rate_factor(50, 100), std::pow(0.95, 20), 1e-12);
}

}  // namespace
}  // namespace zsq::train::genie_images_test
