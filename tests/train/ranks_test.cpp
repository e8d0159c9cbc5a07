// SPDX-License-Identifier: Apache-2.0
// Training split over ranks against training on one.
#include "parallel/ranks.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/temp_folder.h"
#include "tests/support/thread_ranks.h"
#include "tests/train/tiny.h"
#include "train/checkpoint.h"
#include "train/images/image_bank.h"
#include "train/step.h"

namespace zsq::train::ranks_test {
namespace {

using parallel::Communicator;

double difference(const at::Tensor& a, const at::Tensor& b) {
  return a.sub(b).abs().max().item<double>();
}

QuantOptions with_activations_of(std::int64_t bits) {
  QuantOptions options = four_bits();
  options.activations.num_bits = bits;
  return options;
}

constexpr std::int64_t kFineBits = 16;

// A run of the tiny network; `change` sets it up.
struct RankRun {
  explicit RankRun(std::int64_t activation_bits = kFineBits)
      : tiny(1, with_activations_of(activation_bits)) {}

  Tiny tiny;
  Watch watch;
  TrainReport report;
};
using Change = std::function<void(RankRun&, TrainJob&)>;

void run_one(RankRun& own, Communicator& ranks, const Change& change) {
  auto job = own.tiny.job(ranks);
  change(own, job);
  own.report = run(job, own.watch);
}

std::vector<RankRun> run_on(int size, const Change& change,
                            std::int64_t activation_bits = kFineBits) {
  std::vector<RankRun> runs;
  for (int i = 0; i < size; ++i) runs.emplace_back(activation_bits);
  test::ThreadRanks(size).run([&](Communicator& ranks) {
    run_one(runs[static_cast<std::size_t>(ranks.rank())], ranks, change);
  });
  return runs;
}

double metric(const Progress& progress, std::size_t place) {
  return progress.metrics.at(place).second;
}

void expect_near(double a, double b, double tolerance) {
  EXPECT_NEAR(a, b, tolerance * std::max(std::abs(a), std::abs(b)));
}

// Losses of every iteration and the last weights are those of one rank, to float tolerance; those
// of all ranks are equal in each bit. Sums have another order on several ranks and other CPUs, so
// that an activation next to a threshold may take the other code: with 2^16 codes nothing is to be
// seen of it, at 4 bits it is a hundredth of the student's loss.
void expect_like_one_rank(int size, const Change& change,
                          std::int64_t activation_bits = kFineBits) {
  const double of_student_loss = activation_bits == kFineBits ? 1e-4 : 0.05;
  RankRun one(activation_bits);
  run_one(one, parallel::alone(), change);
  const auto runs = run_on(size, change, activation_bits);
  for (const auto& own : runs) {
    expect_equal(own.tiny.student.parameters, runs[0].tiny.student.parameters);
    ASSERT_EQ(own.watch.seen.size(), one.watch.seen.size());
    for (std::size_t i = 0; i < one.watch.seen.size(); ++i) {
      const auto &now = own.watch.seen[i], &before = one.watch.seen[i];
      SCOPED_TRACE(i);
      expect_near(metric(now, 0), metric(before, 0), 1e-4);
      expect_near(now.details[0].second, before.details[0].second, 1e-4);
      if (before.metrics.size() < 2) continue;
      expect_near(metric(now, 1), metric(before, 1), of_student_loss);
      EXPECT_NEAR(metric(now, 2), metric(before, 2), 1e-6);
    }
    const auto expected = tensors_of(one.tiny.generator.parameters()),
               generator = tensors_of(own.tiny.generator.parameters());
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_LT(difference(generator[i], expected[i]), 2e-4) << i;
    for (const auto& name : one.tiny.student.parameters.names()) {
      const auto value = one.tiny.student.parameters.at(name);
      EXPECT_LT(difference(own.tiny.student.parameters.at(name), value),
                1e-3 * value.abs().max().item<double>() + 1e-7)
          << name;
    }
  }
}

TEST(RanksTrain, LikeOneRank) {
  const auto as_it_is = [](RankRun&, TrainJob&) {};
  for (const int size : {2, 3})  // of 3: 2, 3 and 3 images
    for (const std::int64_t activation_bits : {kFineBits, std::int64_t{4}})
      expect_like_one_rank(size, as_it_is, activation_bits);
}

TEST(RanksTrain, LikeOneRankWithEveryLossTerm) {
  expect_like_one_rank(2, [](RankRun&, TrainJob& job) {
    job.options.loss_terms = {};
    for (const auto& term : losses::terms()) job.options.loss_terms.push_back({term.name, 0.5});
    job.options.inundation = Inundation::off;
    job.options.lr = 1e-3;
  });
}

TEST(RanksTrain, LikeOneRankWithABankAndChecks) {
  const auto random = at::detail::createCPUGenerator(5);
  const test::TempFolder folder;
  ImageOptions crops;
  crops.augment_share = 1;
  // Five of eight images: one rank has none but those of the bank.
  const BankDraws bank({at::randn({20, 3, 8, 8}, random, at::kFloat), {}}, 0.6, crops, 1);
  expect_like_one_rank(2, [&](RankRun&, TrainJob& job) {
    job.bank = &bank;
    job.options.learnable_scales = LearnableScales::all;
    job.options.validation_checks = 2;
    job.options.validation_images = 12;
    job.checkpoint = folder / ("state" + std::to_string(job.ranks.size()));
    job.checkpoint_every = 2;
  });
}

ErrorCode code_of(const std::function<void()>& f, std::string& message) {
  try {
    f();
  } catch (const Error& error) {
    message = error.what();
    return error.code();
  }
  ADD_FAILURE() << "no error";
  return ErrorCode::internal;
}

TEST(RanksTrain, BeginWithWhatTheFirstHas) {
  const auto alike = run_on(2, [](RankRun&, TrainJob&) {});
  const auto differing = run_on(2, [](RankRun& own, TrainJob& job) {
    if (job.ranks.rank() == 1) own.tiny.student.parameters.at("fc.bias").detach().add_(0.1);
  });
  for (const auto& own : differing)
    expect_equal(own.tiny.student.parameters, alike[0].tiny.student.parameters);
}

TEST(RanksTrain, StopTogetherAndGoOnToTheSameResult) {
  const test::TempFolder folder;
  const auto file = folder / "state.safetensors";
  const auto unbroken = run_on(2, [](RankRun&, TrainJob&) {});
  std::string message;
  const auto stop = [&] {
    run_on(2, [&](RankRun& own, TrainJob& job) {
      job.checkpoint = file;
      if (job.ranks.rank() == 1) own.watch.stop_after = 6;  // the other is not asked
    });
  };
  EXPECT_EQ(code_of(stop, message), ErrorCode::stopped);
  EXPECT_EQ(iterations_in(file), 6);
  const auto resumed = run_on(2, [&](RankRun&, TrainJob& job) {
    job.checkpoint = file;
    job.resume = true;
  });
  for (const auto& own : resumed)
    expect_equal(own.tiny.student.parameters, unbroken[0].tiny.student.parameters);
}

TEST(RanksTrain, TheFirstAloneWritesCheckpoints) {
  const test::TempFolder folder;
  const auto file_of = [&](int rank) { return folder / ("state" + std::to_string(rank)); };
  std::string message;
  const auto stop = [&] {
    run_on(2, [&](RankRun& own, TrainJob& job) {
      job.checkpoint = file_of(job.ranks.rank());
      own.watch.stop_after = 6;
    });
  };
  EXPECT_EQ(code_of(stop, message), ErrorCode::stopped);
  EXPECT_TRUE(std::filesystem::exists(file_of(0)));
  EXPECT_FALSE(std::filesystem::exists(file_of(1)));
}

// A bit that differs is found, and the checkpoint before it stands.
TEST(RanksTrain, ThatDifferSaveNothing) {
  const test::TempFolder folder;
  const auto file = folder / "state.safetensors";
  std::string message;
  const auto differ = [&] {
    run_on(2, [&](RankRun& own, TrainJob& job) {
      job.checkpoint = file;
      job.checkpoint_every = 4;
      if (job.ranks.rank() == 1)
        own.watch.at_step = [&own](std::int64_t step) {
          if (step == 6) own.tiny.student.parameters.at("fc.bias").detach()[2].add_(1e-3);
        };
    });
  };
  EXPECT_EQ(code_of(differ, message), ErrorCode::internal);
  EXPECT_NE(message.find("rank 0 has other values than rank 1"), std::string::npos) << message;
  EXPECT_EQ(iterations_in(file), 4);
}

TEST(RanksTrain, RefuseWhatTheyCannotShare) {
  std::string message;
  const auto with = [&](const std::function<void(TrainJob&)>& change) {
    return code_of([&] { run_on(2, [&](RankRun&, TrainJob& job) { change(job); }); }, message);
  };
  EXPECT_EQ(with([](TrainJob& job) { job.time_budget = 60; }), ErrorCode::usage);
  EXPECT_EQ(with([](TrainJob& job) { job.options.batch_size = 1; }), ErrorCode::usage);
  EXPECT_NE(message.find("cannot be split over 2 ranks"), std::string::npos) << message;
}

}  // namespace
}  // namespace zsq::train::ranks_test
