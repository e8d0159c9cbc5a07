// SPDX-License-Identifier: Apache-2.0
// Images of a run that plans itself: which it makes, and what it corrects on them.
#include "pipeline/run/learning_images.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "pipeline/run/plan.h"
#include "tests/support/network_builder.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_network.h"

namespace zsq::pipeline {
namespace {

using TheRun = pipeline::Run;  // in a test Run is gtest's

// Two convolutions, the second one in so many groups.
models::Model network(std::int64_t groups) {
  test::NetworkBuilder net({3, 32, 32});
  auto x = net.conv_bn_relu("first", net.input(), 3, 8);
  x = net.conv_bn_relu("second", x, 8, 8, 3, groups);
  x = net.op("flatten", models::Flatten{}, {net.op("pool", models::GlobalAvgPool{}, {x})});
  return net.finish(net.linear("fc", x, 8, 4), 4);
}

class LearningImagesTest : public testing::Test {
 protected:
  TheRun make_run(std::int64_t groups) {
    test::save_onnx(network(groups), folder_ / "network.onnx");
    QuantizeOptions options;
    options.scheme = Scheme::parse("W4A4");
    options.recipe = load_recipe("auto", {"data.preset=cifar10", "process.threads=1"});
    return prepare(folder_ / "network.onnx", options, folder_ / "out", silent_);
  }
  test::TempFolder folder_;
  Observer silent_;
};

TEST_F(LearningImagesTest, AreMadeOnceForEachNumber) {
  const TheRun run = make_run(8);
  LearningImages hurried(run), images(run);
  const auto few_steps = hurried.take({.images = 4, .seconds = 1e-6});
  EXPECT_TRUE(hurried.take({.images = 4}).equal(few_steps));
  EXPECT_FALSE(images.take({.images = 4}).equal(few_steps));
  EXPECT_EQ(images.take({.images = 2}).size(0), 2);
}

// So that stages which want different numbers share the same ones.
TEST_F(LearningImagesTest, AreNoMoreThanTheMost) {
  const TheRun run = make_run(8);
  LearningImages images(run, {.images = 3});
  EXPECT_EQ(images.count(2), 2);
  EXPECT_EQ(images.count(256), 3);
  const auto first = images.take({.images = 4, .seconds = 1e-6});
  EXPECT_EQ(first.size(0), 3);
  EXPECT_TRUE(images.take({.images = 256}).equal(first));
  TheRun of_bank = make_run(8);
  of_bank.bank.learn = first.slice(0, 0, 2);
  EXPECT_EQ(LearningImages(of_bank, {.images = 3}).count(256), 2);
  EXPECT_EQ(LearningImages(of_bank, {.images = 1}).count(256), 1);
}

// A plan counts their seconds with the first stage that learns from them.
TEST_F(LearningImagesTest, AreNewWhereTheStageBeforeHasOthers) {
  const TheRun run = make_run(8);
  LearningImages images(run);
  for (const auto& [wanted, are_new] : {std::pair(8, true), {8, false}, {4, true}, {8, true}})
    EXPECT_EQ(images.seconds_of_new(wanted, {.of_images = 1}) > 0, are_new) << wanted;
}

// In a hurry those that need no optimisation.
TEST_F(LearningImagesTest, AreDeadLeavesWhereNothingElseFits) {
  const TheRun run = make_run(8);
  LearningImages hurried(run, {.only_procedural = true});
  EXPECT_EQ(hurried.seconds_of_new(8, {.of_images = 1}), 0);
  const auto taken = hurried.take({.images = 4}), mixed = LearningImages(run).take({.images = 4});
  EXPECT_FALSE(taken.equal(mixed));
}

// Whether that helps is for the held-out images to say, together with rounding.
TEST_F(LearningImagesTest, ChannelsOfEveryNetworkAreCorrected) {
  for (const std::int64_t groups : {1, 8}) {
    const TheRun run = make_run(groups);
    std::optional<train::TrainReport> trained;
    const auto stages = plan_stages(run, trained);
    EXPECT_EQ(stages.at(2).name, "channel correction");
    EXPECT_TRUE(stages.at(1).judged_with_next);
  }
}

}  // namespace
}  // namespace zsq::pipeline
