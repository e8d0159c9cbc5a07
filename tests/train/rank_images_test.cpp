// SPDX-License-Identifier: Apache-2.0
// Images and blocks that ranks share against those of one rank.
#include <gtest/gtest.h>

#include "core/error.h"
#include "generator/genie.h"
#include "tests/support/network_builder.h"
#include "tests/support/thread_ranks.h"
#include "tests/train/images/collect.h"
#include "tests/train/reconstruction/prepared.h"
#include "tests/train/tiny.h"
#include "train/images/generator_images.h"
#include "train/images/genie_images.h"

namespace zsq::train {
namespace {

using parallel::Communicator;
using Maker = ImageReport (*)(const ImageJob&, Observer&, const ImageSink&);

ImageJob job_of(const models::Model& teacher, const ImageOptions& options, Communicator& ranks) {
  return {.teacher = teacher, .options = options, .images = 20, .seed = 1, .ranks = ranks};
}

std::vector<Collected> made_by(int size, Maker maker, const ImageOptions& options,
                               std::vector<Watch>& watches) {
  const auto teacher = tiny_teacher();
  std::vector<Collected> made(static_cast<std::size_t>(size));
  watches.resize(made.size());
  test::ThreadRanks(size).run([&](Communicator& ranks) {
    const auto rank = static_cast<std::size_t>(ranks.rank());
    made[rank] = collect(maker, job_of(teacher, options, ranks), watches[rank]);
  });
  return made;
}

// Five batches of four images: of three ranks one has none in the last round.
ImageOptions in_batches() {
  ImageOptions options;
  options.batch_size = 4;
  options.steps = 6;
  return options;
}

void expect_images_of_one_rank(Maker maker, const ImageOptions& options) {
  const auto teacher = tiny_teacher();
  Watch alone;
  const auto one = collect(maker, job_of(teacher, options, parallel::alone()), alone);
  for (const int size : {2, 3}) {
    std::vector<Watch> watches;
    for (const auto& made : made_by(size, maker, options, watches)) {
      EXPECT_TRUE(made.images.equal(one.images));  // in each bit
      EXPECT_TRUE(made.labels.equal(one.labels));
      EXPECT_TRUE(made.logits.equal(one.logits));
      EXPECT_EQ(made.report.steps, one.report.steps);
      EXPECT_EQ(made.report.cross_entropy, one.report.cross_entropy);
    }
    EXPECT_EQ(watches[0].seen.back().step, alone.seen.back().step);
    EXPECT_EQ(watches[0].seen.back().total, alone.seen.back().total);
  }
}

TEST(RankImages, AreThoseOfOneRank) {
  expect_images_of_one_rank(make_images, in_batches());
  auto options = in_batches();
  options.swing_convolution = true;
  options.low_pass_cutoff = 2;
  expect_images_of_one_rank(make_images, options);
  expect_images_of_one_rank(make_genie_images, in_batches());
}

// A batch needs the moments of those before it: nothing to share.
TEST(RankImages, OfMomentsOverAllBatchesToo) {
  auto options = in_batches();
  options.moments_over = MomentsOver::all_batches;
  expect_images_of_one_rank(make_images, options);
}

TEST(RankImages, OfAGeneratorThatRanksTrain) {
  auto options = in_batches();
  options.source = ImageSource::generator;
  options.batch_size = 10;
  const auto teacher = tiny_teacher();
  Watch alone;
  const auto one =
      collect(make_generator_images, job_of(teacher, options, parallel::alone()), alone);
  std::vector<Watch> watches;
  const auto made = made_by(2, make_generator_images, options, watches);
  EXPECT_TRUE(made[0].images.equal(made[1].images));
  EXPECT_LT(made[0].images.sub(one.images).abs().max().item<double>(), 2e-2);
}

TEST(RankImages, StopTogether) {
  const auto teacher = tiny_teacher();
  auto options = in_batches();
  options.steps = 1000;
  std::vector<std::ptrdiff_t> steps(2);
  const auto stop = [&] {
    test::ThreadRanks(2).run([&](Communicator& ranks) {
      Watch watch;
      if (ranks.rank() == 1) watch.stop_after = 32;
      try {
        collect(make_images, job_of(teacher, options, ranks), watch);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::stopped);
        steps[static_cast<std::size_t>(ranks.rank())] = std::ssize(watch.seen);
        throw;
      }
    });
  };
  EXPECT_THROW(stop(), Error);
  EXPECT_EQ(steps, (std::vector<std::ptrdiff_t>{32, 32}));
}

// Rounding, scales and biases by gradients of parts of each batch.
TEST(RankBlocks, LearnAsOnOneRank) {
  auto options = short_run();
  options.iterations = 30;
  options.batch_size = 9;  // 4 and 5 images
  Prepared one(test::residual_network(), bits(4, 4));
  const auto run_one = [&](Prepared& p, Communicator& ranks) {
    Observer silent;
    return reconstruct({.teacher = p.teacher,
                        .student = p.student,
                        .images = p.images,
                        .options = options,
                        .seed = 1,
                        .ranks = ranks},
                       silent);
  };
  const auto expected = run_one(one, parallel::alone());
  std::vector<Prepared> parts;
  for (int rank = 0; rank < 2; ++rank) parts.emplace_back(test::residual_network(), bits(4, 4));
  std::vector<ReconstructReport> reports(2);
  test::ThreadRanks(2).run([&](Communicator& ranks) {
    const auto rank = static_cast<std::size_t>(ranks.rank());
    reports[rank] = run_one(parts[rank], ranks);
  });
  expect_equal(parts[0].student.parameters, parts[1].student.parameters);
  for (const auto& report : reports) {
    ASSERT_EQ(report.blocks.size(), expected.blocks.size());
    for (std::size_t i = 0; i < expected.blocks.size(); ++i) {
      EXPECT_LE(report.blocks[i].after, report.blocks[i].before);
      EXPECT_NEAR(report.blocks[i].after, expected.blocks[i].after, 0.05 * expected.blocks[i].after)
          << i;
    }
  }
  for (const auto& site : quant::weight_sites(one.student)) {
    const auto& weight = one.student.parameters.at(site.parameter);
    const auto& other = parts[0].student.parameters.at(site.parameter);
    const auto moved = weight.sub(other).abs().gt(1e-2 * weight.abs().max().item<double>());
    EXPECT_LT(moved.to(at::kDouble).mean().item<double>(), 0.02) << site.parameter;
  }
}

}  // namespace
}  // namespace zsq::train
