// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report/recorder.h"

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>

#include "formats/atomic_file.h"
#include "pipeline/report/samples.h"
#include "tests/support/event_file.h"
#include "tests/support/temp_folder.h"

namespace zsq::pipeline::recorder_test {
namespace {

namespace fs = std::filesystem;

struct Listener : Observer {
  void on_progress(const Progress& progress) override { steps.push_back(progress.step); }
  void on_message(LogLevel level, const std::string& message) override {
    if (level == LogLevel::warning) warnings.push_back(message);
  }
  std::vector<std::int64_t> steps;
  std::vector<std::string> warnings;
};

class RecorderTest : public ::testing::Test {
 protected:
  void train(Recorder& recorder, std::int64_t from, std::int64_t to, std::int64_t total = 100) {
    for (std::int64_t step = from; step <= to; ++step)
      recorder.on_progress({"fine-tune",
                            step,
                            total,
                            0,
                            {{"loss", 1.0 / static_cast<double>(step)}},
                            {{"bn_statistics", 2}, {"never", std::nan("")}}});
  }
  std::vector<std::int64_t> steps(const std::string& phase = "fine-tune") const {
    std::vector<std::int64_t> steps;
    for (const auto& record : read_history(folder_.path()))
      if (record.phase == phase) steps.push_back(record.step);
    return steps;
  }
  static std::vector<std::int64_t> range(std::int64_t from, std::int64_t to) {
    std::vector<std::int64_t> numbers;
    for (auto i = from; i <= to; ++i) numbers.push_back(i);
    return numbers;
  }
  std::vector<test::Event> events() const {
    std::vector<test::Event> all;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      if (entry.path().filename().string().find("tfevents") == std::string::npos) continue;
      EXPECT_TRUE(all.empty()) << "two files of events";
      all = test::read_events(formats::read_text(entry.path()));
    }
    return all;
  }
  // What TensorBoard is told is what the history says.
  void expect_events_like_history() const {
    const auto records = read_history(folder_.path());
    const auto found = events();
    ASSERT_EQ(found.size(), records.size() + 1);
    EXPECT_EQ(found[0].version, "brain.Event:2");
    for (std::size_t i = 0; i < records.size(); ++i) {
      EXPECT_EQ(found[i + 1].step, records[i].step);
      EXPECT_EQ(found[i + 1].scalars.size(), records[i].metrics.size());
      for (const auto& [name, value] : records[i].metrics)
        EXPECT_EQ(found[i + 1].scalars.at(records[i].phase + "/" + name),
                  static_cast<float>(value));
      EXPECT_EQ(found[i + 1].images.size(), records[i].image.empty() ? 0u : 1u);
    }
  }

  const test::TempFolder folder_;
  Listener listener_;
};

TEST_F(RecorderTest, RecordsStagesAndHandsEverythingOn) {
  Recorder recorder(listener_);
  train(recorder, 1, 2);  // before there is a folder
  recorder.open(folder_.path(), {});
  train(recorder, 1, 2);  // before the first stage
  recorder.on_stage(1, "fine-tuning");
  train(recorder, 1, 5);
  recorder.on_measurement({"validation", 5, 100, 0, {{"kl", 0.5}}});
  recorder.on_progress({"no numbers", 1, 2, 0, {}});
  recorder.close();
  train(recorder, 6, 9);
  EXPECT_EQ(listener_.steps.size(), 2u + 2 + 5 + 1 + 4);
  const auto records = read_history(folder_.path());
  ASSERT_EQ(records.size(), 6u);
  EXPECT_EQ(records[1].stage, 1);
  EXPECT_EQ(records[1].step, 2);
  EXPECT_EQ(records[1].total, 100);
  EXPECT_EQ(records[1].metrics,
            (std::vector<std::pair<std::string, double>>{{"loss", 0.5}, {"bn_statistics", 2}}));
  EXPECT_EQ(records[5].phase, "validation");
  expect_events_like_history();
}

TEST_F(RecorderTest, APhaseHasAboutAThousandRecords) {
  Recorder recorder(listener_);
  recorder.open(folder_.path(), {});
  recorder.on_stage(1, "");
  train(recorder, 1, 20003, 20003);
  const auto recorded = steps();
  EXPECT_NEAR(static_cast<double>(recorded.size()), 1000, 5);
  EXPECT_EQ(recorded.front(), 1);
  EXPECT_EQ(recorded.back(), 20003);
}

TEST_F(RecorderTest, AResumedRunHasEachStepOnce) {
  const eval::Image image{1, 1, {1, 2, 3}};
  {
    Recorder killed(listener_);
    killed.open(folder_.path(), {});
    killed.on_stage(1, "rounding");
    train(killed, 1, 3);
    killed.on_stage(2, "fine-tuning");
    train(killed, 1, 30);
    killed.add_samples(10, image);
    killed.add_samples(30, image);
    killed.on_measurement({"validation", 30, 100, 0, {{"kl", 0.5}}});
  }
  std::ofstream(folder_ / kHistoryFile, std::ios::app) << R"({"stage":2,"phase":"fi)";  // half
  Recorder resumed(listener_);
  resumed.open(folder_.path(), {1, 0, 20});
  EXPECT_TRUE(fs::exists(folder_ / "samples/0000010.png"));
  EXPECT_FALSE(fs::exists(folder_ / "samples/0000030.png"));
  EXPECT_TRUE(steps("validation").empty());
  resumed.on_stage(2, "fine-tuning");
  train(resumed, 21, 40);
  auto expected = range(1, 3);
  for (const auto step : range(1, 40)) expected.push_back(step);
  EXPECT_EQ(steps(), expected);
  expect_events_like_history();
  EXPECT_TRUE(listener_.warnings.empty());
}

// Reconstruction continues after a block, rounding after a layer, and their images are made again.
TEST_F(RecorderTest, StepsThatComeAgainReplaceThoseBefore) {
  {
    Recorder killed(listener_);
    killed.open(folder_.path(), {});
    killed.on_stage(1, "reconstruction");
    killed.on_progress({"images", 1, 1, 0, {{"loss", 9}}});
    train(killed, 1, 30);
  }
  Recorder resumed(listener_);
  resumed.open(folder_.path(), {0, 2, {}});
  resumed.on_stage(1, "reconstruction");
  resumed.on_progress({"images", 1, 1, 0, {{"loss", 9}}});
  train(resumed, 21, 40);
  EXPECT_EQ(steps(), range(1, 40));
  EXPECT_EQ(steps("images").size(), 1u);
  expect_events_like_history();
}

TEST_F(RecorderTest, ANewRunBeginsAnew) {
  for (int run = 0; run < 2; ++run) {
    Recorder recorder(listener_);
    recorder.open(folder_.path(), {});
    recorder.on_stage(1, "");
    train(recorder, 1, 3);
  }
  EXPECT_EQ(steps(), range(1, 3));
  expect_events_like_history();
}

TEST_F(RecorderTest, WhatCannotBeWrittenIsAWarning) {
  Recorder recorder(listener_);
  recorder.open(folder_ / "missing", {});
  recorder.on_stage(1, "");
  train(recorder, 1, 3);
  ASSERT_EQ(listener_.warnings.size(), 1u);
  EXPECT_NE(listener_.warnings[0].find("missing"), std::string::npos);
  EXPECT_EQ(listener_.steps.size(), 3u);
}

TEST(Samples, StandSideBySide) {
  // Two images of one pixel, the second white; normalised as (x - 0.5) / 0.25.
  eval::Preprocessing preprocessing;
  preprocessing.mean = {0.5, 0.5, 0.5};
  preprocessing.std = {0.25, 0.25, 0.25};
  const auto images = at::tensor({-2.F, -1.F, 0.F, 2.F, 2.F, 2.F}).view({2, 3, 1, 1});
  const eval::Image strip = sample_strip(images, preprocessing);
  EXPECT_EQ(strip.height, 1);
  EXPECT_EQ(strip.width, 4);  // a gap of two pixels
  EXPECT_EQ(strip.pixels,
            (std::vector<std::uint8_t>{0, 64, 128, 128, 128, 128, 128, 128, 128, 255, 255, 255}));
}

TEST(Samples, LargeImagesShrinkAndFewAreShown) {
  const eval::Image strip = sample_strip(at::full({9, 3, 224, 112}, 0.5), eval::Preprocessing{});
  EXPECT_EQ(strip.height, 80);
  EXPECT_EQ(strip.width, 6 * 40 + 5 * 2);
  EXPECT_EQ(strip.pixels.size(), static_cast<std::size_t>(3 * strip.height * strip.width));
}

TEST(Samples, WithoutPreprocessingTheRangeIsTheirOwn) {
  const auto grey = at::tensor({-3.F, 7.F}).view({2, 1, 1, 1});
  const eval::Image strip = sample_strip(grey, std::nullopt);
  EXPECT_EQ(strip.pixels.front(), 0);
  EXPECT_EQ(strip.pixels.back(), 255);
  EXPECT_TRUE(sample_strip(at::full({1, 2, 4, 4}, 1.0), std::nullopt).pixels.empty());
}

}  // namespace
}  // namespace zsq::pipeline::recorder_test
