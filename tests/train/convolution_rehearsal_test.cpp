// SPDX-License-Identifier: Apache-2.0
#include "train/convolution_rehearsal.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/seed_each_test.h"
#include "tests/train/tiny.h"
#include "train/step.h"

namespace zsq::train {
namespace {

// What is chosen, of seconds for {row-major, channels_last} x {by rule, measured}.
std::string chosen(const double (&seconds)[2][2]) {
  int asked = 0;
  const auto found = fastest([&](const ConvolutionSettings& s) {
    ++asked;
    return seconds[s.channels_last][s.benchmark];
  });
  EXPECT_EQ(asked, 4);
  return describe(found);
}

TEST(ConvolutionRehearsal, TakesTheFastest) {
  EXPECT_EQ(chosen({{1.0, 1.0}, {1.0, 0.5}}), "channels_last, cuDNN's algorithms measured");
  EXPECT_EQ(chosen({{0.4, 1.0}, {1.0, 0.5}}), "row-major, cuDNN's algorithms chosen by rule");
  EXPECT_EQ(chosen({{0.4, 0.3}, {1.0, 0.5}}), "row-major, cuDNN's algorithms measured");
}

TEST(ConvolutionRehearsal, StaysWithTheDefaultWhereLittleIsGained) {
  const std::string standard = describe({});
  EXPECT_EQ(standard, "channels_last, cuDNN's algorithms chosen by rule");
  EXPECT_EQ(chosen({{0.96, 0.97}, {1.0, 0.96}}), standard);
  EXPECT_EQ(chosen({{2.0, 2.0}, {1.0, 2.0}}), standard);
}

TEST(ConvolutionRehearsal, PutsTheModeBack) {
  const bool before = at::globalContext().benchmarkCuDNN();
  {
    const CudnnBenchmark outer(true);
    {
      const CudnnBenchmark inner(false);
      EXPECT_FALSE(at::globalContext().benchmarkCuDNN());
    }
    EXPECT_TRUE(at::globalContext().benchmarkCuDNN());
  }
  EXPECT_EQ(at::globalContext().benchmarkCuDNN(), before);
}

// The trial runs whatever the network holds; what it takes is not asserted.
TEST(ConvolutionRehearsal, RunsTheNetworkForwardAndBackward) {
  const Tiny tiny;
  for (const auto precision : {Precision::fp32, Precision::bf16})
    for (const bool channels_last : {true, false})
      EXPECT_GT(seconds_of_convolutions(tiny.teacher, 4, precision, {channels_last, false}), 0);
  for (const auto& name : tiny.teacher.parameters.names())
    EXPECT_FALSE(tiny.teacher.parameters.at(name).requires_grad()) << name;
}

TEST(ConvolutionRehearsal, ImagesInEitherFormatTrainAlike) {
  std::vector<double> losses;
  for (const bool channels_last : {true, false}) {
    Tiny tiny;
    Step step(tiny.teacher, tiny.student, tiny.generator, tiny.options);
    step.use({channels_last, false});
    step.calibrate();
    const auto batch = step.generator_step(0, 1);
    EXPECT_EQ(batch.images.is_contiguous(), !channels_last);
    losses.push_back(batch.loss.item<double>());
    losses.push_back(step.student_step(batch, 1).loss.item<double>());
  }
  EXPECT_NEAR(losses[2], losses[0], 1e-4 * std::abs(losses[0]));
  EXPECT_NEAR(losses[3], losses[1], 1e-3 * std::abs(losses[1]));
}

}  // namespace
}  // namespace zsq::train
