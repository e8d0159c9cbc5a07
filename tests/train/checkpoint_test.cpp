// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/temp_folder.h"
#include "tests/train/tiny.h"
#include "train/schedule.h"

namespace zsq::train {
namespace {

class Resume : public ::testing::TestWithParam<int> {};

TEST_P(Resume, GivesTheResultOfAnUnbrokenRun) {
  auto tables = four_bits();
  tables.weights.level_tables = {LevelTable::normal};
  for (const auto& [mode, quant] :
       {std::pair{Inundation::exact, four_bits()},
        {Inundation::exact, tables},
        {Inundation::published, four_bits(/*range_every_step=*/true)}}) {
    const bool goes_back = mode == Inundation::published;
    Tiny unbroken(1, quant), broken(1, quant), resumed(1, quant);
    for (auto* tiny : {&unbroken, &broken, &resumed}) {
      tiny->options.inundation = mode;
      tiny->options.learnable_scales = LearnableScales::all;
      tiny->options.scale_lr = 0.05;  // more than is good for it: the best state is not the last
      tiny->options.validation_checks = 3;
      tiny->options.validation_images = 20;
      if (goes_back) tiny->options.affine_lr = 1e3;
      tiny->options.backtracking = 0.5;
    }
    resumed.options.cuda_graphs = false;  // how kernels are launched decides nothing
    Watch watch;
    std::vector<std::int64_t> shown, shown_in_parts;
    auto whole = unbroken.job();
    whole.on_images = [&](std::int64_t iteration, const at::Tensor&) {
      shown.push_back(iteration);
    };
    const auto expected = run(whole, watch);
    const double last_factor = watch.seen.back().details[1].second;
    EXPECT_TRUE(!goes_back || last_factor < rate_factor(unbroken.options, 0.9)) << last_factor;
    EXPECT_EQ(shown, (std::vector<std::int64_t>{1, 2, 4, 5, 7, 9, 10}));

    const test::TempFolder folder;
    Watch stopper;
    stopper.stop_after = GetParam();
    auto job = broken.job();
    job.checkpoint = folder / "state.safetensors";
    job.on_images = [&](std::int64_t iteration, const at::Tensor& images) {
      shown_in_parts.push_back(iteration);
      EXPECT_EQ(images.sizes(), (std::vector<std::int64_t>{8, 3, 8, 8}));
    };
    try {
      run(job, stopper);
      FAIL() << "did not stop";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::stopped);
    }
    ASSERT_EQ(std::ssize(stopper.seen), GetParam());
    EXPECT_EQ(iterations_in(job.checkpoint), GetParam());

    auto again = resumed.job();
    again.checkpoint = folder / "state.safetensors";
    again.resume = true;
    again.on_images = job.on_images;
    Watch rest;
    const auto report = run(again, rest);
    ASSERT_TRUE(report.kept.has_value());
    EXPECT_EQ(report.kept->iteration, expected.kept->iteration);
    EXPECT_EQ(report.kept->checks, expected.kept->checks);
    EXPECT_EQ(report.kept->start.kl, expected.kept->start.kl);
    EXPECT_EQ(report.kept->kept.kl, expected.kept->kept.kl);
    EXPECT_EQ(report.kept->last.kl, expected.kept->last.kl);
    EXPECT_EQ(report.iterations, 10);
    EXPECT_EQ(shown_in_parts, shown);
    EXPECT_EQ(stopper.measured.size() + rest.measured.size(), watch.measured.size());
    EXPECT_EQ(std::ssize(rest.seen), 10 - GetParam());
    EXPECT_EQ(report.loss_student, expected.loss_student);
    EXPECT_EQ(report.layers[1].crossings, expected.layers[1].crossings);
    EXPECT_EQ(report.layers[1].k, expected.layers[1].k);
    expect_equal(resumed.student.parameters, unbroken.student.parameters);
  }
}

// In the warm-up, at its end (calibrated or not yet), in fine-tuning, at the last iteration.
INSTANTIATE_TEST_SUITE_P(At, Resume, ::testing::Values(0, 2, 3, 4, 9));

TEST(Run, RefusesTheCheckpointOfAnotherRecipe) {
  const test::TempFolder folder;
  Tiny tiny;
  auto job = tiny.job();
  job.checkpoint = folder / "state.safetensors";
  job.checkpoint_every = 4;
  Observer silent;
  run(job, silent);
  ASSERT_TRUE(std::filesystem::exists(job.checkpoint));
  tiny.options.crossing_rate = 0.5;
  auto other = tiny.job();
  other.checkpoint = folder / "state.safetensors";
  other.resume = true;
  try {
    run(other, silent);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_NE(std::string(error.what()).find("finetune.crossing_rate"), std::string::npos);
  }
}

}  // namespace
}  // namespace zsq::train
