// SPDX-License-Identifier: Apache-2.0
// Which stages a recipe has on which network, as docs/method.md and docs/recipes.md say.
#include <gtest/gtest.h>

#include <algorithm>

#include "pipeline/run/prepare.h"
#include "pipeline/run/stage.h"
#include "tests/support/network_builder.h"

namespace zsq::pipeline {
namespace {

models::Model planned_network(std::int64_t groups) {
  test::NetworkBuilder net({3, 8, 8});
  auto x = net.conv_bn_relu("conv", net.input(), 3, 4);
  x = net.conv_bn_relu("second", x, 4, 4, 3, groups);
  x = net.op("pool", models::GlobalAvgPool{}, {x});
  x = net.op("flatten", models::Flatten{}, {x});
  return net.finish(net.linear("fc", x, 4, 2), 2);
}

using Names = std::vector<std::string>;

Names stages_of(const std::string& name, std::int64_t groups = 1) {
  const Recipe recipe = load_recipe(name);
  const models::Model model = planned_network(groups);
  Names names;
  for (const StageKind* kind : stage_kinds())
    if (kind->applies(recipe, model)) names.push_back(kind->name(recipe));
  return names;
}

// By gradients, many steps long: these come to fit the images that they see.
TEST(StageKinds, OnlyReconstructionAndFineTuningLearn) {
  for (const StageKind* kind : stage_kinds())
    EXPECT_EQ(kind->learns, kind == &kReconstruction || kind == &kFineTuning);
}

TEST(StageKinds, ApplyAsTheRecipeSays) {
  EXPECT_EQ(stages_of("instant"), (Names{"statistics and SQuant rounding"}));
  EXPECT_EQ(stages_of("instant+gptq"), (Names{"GPTQ-style rounding", "calibration"}));
  EXPECT_EQ(stages_of("instant+gptq+channel_correction"),
            (Names{"GPTQ-style rounding", "calibration", "channel correction"}));
  EXPECT_EQ(stages_of("deploy_w3a3"), (Names{"block reconstruction", "fine-tuning"}));
  EXPECT_EQ(stages_of("paper/ait_resnet20_cifar10_w4a4"), (Names{"fine-tuning"}));
}

// Whether channel correction helps a network without depthwise convolutions is for the held-out
// images to say.
TEST(StageKinds, OfARunThatPlansItselfAreAll) {
  for (const std::int64_t groups : {1, 4}) {
    const Names names = stages_of("auto", groups);
    EXPECT_EQ(std::ranges::count(names, "channel correction"), 1);
    EXPECT_EQ(names.front(), "statistics and SQuant rounding");
    EXPECT_EQ(names.back(), "fine-tuning");
  }
}

// A stage that may be undone needs one before it.
TEST(StageKinds, CalibrateBeforeWhatMayBeUndone) {
  Recipe recipe = load_recipe("deploy");
  recipe.finetune.validation_checks = 0;
  EXPECT_FALSE(kFirstCalibration.applies(recipe, planned_network(1)));
  recipe.finetune.validation_checks = 4;
  EXPECT_TRUE(undoes_stages(recipe));
  EXPECT_TRUE(kFirstCalibration.applies(recipe, planned_network(1)));
}

TEST(StageKinds, CalibrateBeforeChannelsAreCorrected) {
  Recipe recipe = load_recipe("deploy_w2");
  EXPECT_FALSE(kFirstCalibration.applies(recipe, planned_network(1)));
  recipe.quantize.channel_correction = 8;
  EXPECT_TRUE(kFirstCalibration.applies(recipe, planned_network(1)));
}

TEST(StageKinds, StateMemoryWhereTheyKeepValues) {
  for (const StageKind* kind : stage_kinds()) {
    const bool calibrates = kind == &kFirstCalibration || kind == &kCalibration || kind->trial;
    EXPECT_EQ(kind->memory == nullptr, calibrates);
    EXPECT_EQ(kind->seconds == nullptr, calibrates);
  }
}

}  // namespace
}  // namespace zsq::pipeline
