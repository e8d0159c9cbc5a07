// SPDX-License-Identifier: Apache-2.0
#include "train/images/make_images.h"

#include <ATen/ops/bincount.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/fft_fft2.h>
#include <ATen/ops/fft_ifft2.h>
#include <ATen/ops/full.h>
#include <ATen/ops/real.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "core/error.h"
#include "generator/dead_leaves.h"
#include "models/execute.h"
#include "tests/train/images/collect.h"
#include "tests/train/tiny.h"
#include "train/images/image_rate.h"
#include "train/parameters.h"

namespace zsq::train::make_images_test {
namespace {

Collected make(const ImageJob& job) {
  Observer silent;
  return collect(make_images, job, silent);
}

ImageOptions short_options(std::int64_t steps) {
  ImageOptions options;
  options.batch_size = 8;
  options.steps = steps;
  return options;
}

// A network of random weights has no images that suit both terms, nor some for each class: each
// term is followed alone, and how far is compared.
TEST(MakeImages, TheTeacherComesToSeeTheLabelsAndItsOwnStatistics) {
  const auto teacher = tiny_teacher();
  auto options = short_options(150);
  const auto start = make({teacher, short_options(0), 16, 1}).report;
  const auto statistics = make({teacher, options, 16, 1}).report;
  options.bns_weight = 0;
  const auto labels = make({teacher, options, 16, 1}).report;
  EXPECT_EQ(start.steps, 0);
  EXPECT_EQ(labels.steps, 300);
  EXPECT_LT(labels.cross_entropy, 0.5 * start.cross_entropy);
  EXPECT_LT(labels.cross_entropy, 0.95 * statistics.cross_entropy);
  EXPECT_LT(statistics.batch_norm_statistics, 0.5 * start.batch_norm_statistics);
  EXPECT_LT(statistics.batch_norm_statistics, 0.5 * labels.batch_norm_statistics);
}

TEST(MakeImages, ReportsWhatTheFinishedImagesAre) {
  const auto teacher = tiny_teacher();
  for (const bool swing : {false, true}) {
    auto options = short_options(5);
    options.swing_convolution = swing;
    options.low_pass_cutoff = 2;
    const auto made = make({teacher, options, 8, 1});
    models::Taps taps{models::batch_norm_inputs(teacher.graph), {}};
    const auto logits = models::execute(teacher.graph, teacher.parameters, made.images, &taps);
    EXPECT_LT((logits - made.logits).abs().max().item<double>(), 1e-5);
    EXPECT_NEAR(losses::hard_sample_cross_entropy(logits, made.labels, 0).item<double>(),
                made.report.cross_entropy, 1e-5);
    EXPECT_NEAR(
        losses::batch_norm_statistics(losses::batch_moments(taps.values), running_moments(teacher))
            .item<double>(),
        made.report.batch_norm_statistics, 1e-5);
    EXPECT_NEAR(logits.argmax(1).eq(made.labels).to(at::kDouble).mean().item<double>(),
                made.report.label_agreement, 1e-9);
  }
}

TEST(MakeImages, Bf16LearnsAsWell) {
  const auto teacher = tiny_teacher();
  auto options = short_options(40);
  const auto wide = make({teacher, options, 8, 1});
  options.precision = Precision::bf16;
  const auto narrow = make({teacher, options, 8, 1});
  EXPECT_FALSE(narrow.images.equal(wide.images));
  EXPECT_NEAR(narrow.report.batch_norm_statistics, wide.report.batch_norm_statistics,
              0.2 * wide.report.batch_norm_statistics);
  EXPECT_NEAR(narrow.report.cross_entropy, wide.report.cross_entropy,
              0.2 * wide.report.cross_entropy);
}

TEST(MakeImages, BatchesAreNearlyEqualAndEachItsOwn) {
  const auto teacher = tiny_teacher();
  const auto made = make({teacher, short_options(2), 19, 1});
  EXPECT_EQ(made.sizes, (std::vector<std::int64_t>{6, 6, 7}));
  EXPECT_EQ(made.images.size(0), 19);
  EXPECT_TRUE(made.labels.equal(bank_labels(19, 4, 1)));
  EXPECT_FALSE(made.images.slice(0, 0, 6).equal(made.images.slice(0, 6, 12)));
}

TEST(MakeImages, TheSeedDecides) {
  const auto teacher = tiny_teacher();
  const auto a = make({teacher, short_options(3), 8, 1}),
             b = make({teacher, short_options(3), 8, 1}),
             c = make({teacher, short_options(3), 8, 2});
  EXPECT_TRUE(a.images.equal(b.images));
  EXPECT_FALSE(a.images.equal(c.images));
}

TEST(MakeImages, PixelsStayWhatAPixelCanBe) {
  const auto teacher = tiny_teacher();
  auto options = short_options(20);
  options.low_pass_cutoff = 3;
  const auto made = make({teacher, options, 8, 1, at::full({3}, -0.5), at::full({3}, 0.25)});
  EXPECT_GE(made.images.min().item<double>(), -0.5);
  EXPECT_LE(made.images.max().item<double>(), 0.25);
  // Free pixels go further.
  EXPECT_GT(make({teacher, options, 8, 1}).images.max().item<double>(), 0.25);
}

TEST(MakeImages, StartFromTheDeadLeavesOfTheirNumbers) {
  const auto teacher = tiny_teacher();
  auto options = short_options(0);
  options.start = ImageStart::dead_leaves;
  const ImageJob job{teacher, options, 11, 1, at::full({3}, -0.5), at::full({3}, 0.25)};
  const auto shares = generator::dead_leaves_images(0, 11, teacher.graph.input_shape, /*seed=*/1);
  EXPECT_TRUE(make(job).images.allclose(shares.mul(0.75).sub(0.5), 0, 1e-6));
  options.steps = 20;
  EXPECT_LT(make({teacher, options, 11, 1, job.lowest, job.highest}).report.batch_norm_statistics,
            make(job).report.batch_norm_statistics);
}

// Adam's first step is the rate against the sign of the gradient.
TEST(MakeImages, StepsHaveTheSpectrumOfDecayPower) {
  const auto teacher = tiny_teacher();
  auto options = short_options(0);
  options.bns_weight = 0;
  options.augment_share = 0;
  const auto start = make({teacher, options, 8, 1});
  options.steps = 1;
  options.decay_power = 0.5;
  const auto moved = make({teacher, options, 8, 1}).images - start.images;

  const auto height = moved.size(2), width = moved.size(3);
  auto amplitudes = at::empty({height, width}, at::kDouble);
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x) {
      const double u = static_cast<double>(std::min(y, height - y)),
                   v = static_cast<double>(std::min(x, width - x));
      amplitudes[y][x] = 1 / std::sqrt(std::max(1.0, std::sqrt(u * u + v * v)));
    }
  amplitudes /= amplitudes.square().mean().sqrt();
  const auto step_of_z = at::real(at::fft_ifft2(at::fft_fft2(moved.to(at::kDouble)) / amplitudes));

  const auto images = start.images.clone().requires_grad_(true);
  const auto logits = models::execute(teacher.graph, teacher.parameters, images);
  const auto gradient = torch::autograd::grad(
      {losses::hard_sample_cross_entropy(logits, start.labels, 0)}, {images})[0];
  const auto of_z = at::real(at::fft_ifft2(at::fft_fft2(gradient.to(at::kDouble)) * amplitudes));
  const auto expected = of_z.div(of_z.abs() + 1e-8).mul(-options.lr);
  EXPECT_LT((step_of_z - expected).abs().max().item<double>(), 1e-3 * options.lr);
}

// The moments of all images together, as what the network computes of them says.
double whole_set(const models::Model& teacher, const Collected& made) {
  models::Taps taps{models::batch_norm_inputs(teacher.graph), {}};
  models::execute(teacher.graph, teacher.parameters, made.images, &taps);
  return losses::batch_norm_statistics(losses::batch_moments(taps.values), running_moments(teacher))
      .item<double>();
}

TEST(MakeImages, MomentsOverAllBatchesAreThoseOfTheWholeSet) {
  const auto teacher = tiny_teacher();
  auto options = short_options(60);
  const auto each = make({teacher, options, 32, 1});
  options.moments_over = MomentsOver::all_batches;
  const auto all = make({teacher, options, 32, 1});
  EXPECT_NEAR(all.report.batch_norm_statistics, whole_set(teacher, all), 1e-5);
  EXPECT_LT(whole_set(teacher, all), 0.9 * whole_set(teacher, each));
  // The first batch has none before it.
  EXPECT_TRUE(all.images.slice(0, 0, 8).equal(each.images.slice(0, 0, 8)));
  EXPECT_FALSE(all.images.slice(0, 8, 16).equal(each.images.slice(0, 8, 16)));
}

TEST(MakeImages, EveryClassIsAsFrequentAndTheOrderIsNotFixed) {
  const auto labels = bank_labels(23, 5, 3);
  const auto counts = at::bincount(labels, {}, 5);
  EXPECT_EQ(counts.min().item<std::int64_t>(), 4);
  EXPECT_EQ(counts.max().item<std::int64_t>(), 5);
  EXPECT_FALSE(labels.slice(0, 0, 5).equal(labels.slice(0, 5, 10)) &&
               labels.slice(0, 5, 10).equal(labels.slice(0, 10, 15)));
  EXPECT_TRUE(labels.slice(0, 0, 7).equal(bank_labels(7, 5, 3)));
}

TEST(MakeImages, StopsAndRefuses) {
  class Impatient : public Observer {
   public:
    void on_progress(const Progress& progress) override { steps = progress.step; }
    bool stop_requested() override { return steps >= 3; }
    std::int64_t steps = 0;
  } impatient;
  const auto teacher = tiny_teacher();
  const auto code_of = [&](const ImageJob& job, Observer& observer) {
    try {
      make_images(job, observer, [](const MadeImages&) {});
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::internal;
  };
  EXPECT_EQ(code_of({teacher, short_options(5), 8, 1}, impatient), ErrorCode::stopped);
  EXPECT_EQ(impatient.steps, 3);
  Observer observer;
  EXPECT_EQ(code_of({teacher, short_options(5), 0, 1}, observer), ErrorCode::usage);
  auto broken = tiny_teacher();
  broken.parameters.at("fc.bias").fill_(std::nan(""));
  EXPECT_EQ(code_of({broken, short_options(5), 8, 1}, observer), ErrorCode::numeric_failure);
}

TEST(ImageRate, Schedules) {
  ImageOptions options;
  options.steps = 400;
  options.lr = 0.2;
  const ImageRate cosine(options);
  EXPECT_DOUBLE_EQ(cosine.at(0), 0.2);
  EXPECT_NEAR(cosine.at(200), 0.1, 1e-12);
  EXPECT_NEAR(cosine.at(100), 0.2 * (1 + std::sqrt(0.5)) / 2, 1e-12);

  options.schedule = RateSchedule::plateau;
  ImageRate plateau(options);
  plateau.saw(1);
  for (int i = 0; i < 20; ++i) plateau.saw(1);  // steps / 20 without a fall are borne
  EXPECT_DOUBLE_EQ(plateau.at(0), 0.2);
  plateau.saw(0.99999);  // a fall too small to count
  EXPECT_NEAR(plateau.at(0), 0.02, 1e-12);
  for (int i = 0; i < 1000; ++i) plateau.saw(1);
  EXPECT_DOUBLE_EQ(plateau.at(0), 1e-4);
}

}  // namespace
}  // namespace zsq::train::make_images_test
