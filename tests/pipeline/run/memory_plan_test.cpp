// SPDX-License-Identifier: Apache-2.0
#include "pipeline/run/memory_plan.h"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pipeline/session/boundary.h"
#include "pipeline/session/process_memory.h"
#include "tests/support/error_message.h"
#include "tests/support/network_builder.h"

namespace zsq::pipeline {
namespace {

struct Messages : Observer {
  void on_message(LogLevel, const std::string& message) override { all += message + "\n"; }
  std::string all;
};

// Outputs of one image, in floats: input 3 x 8 x 8, four maps of 4 x 8 x 8 (convolution, BatchNorm,
// ReLU), 4 pooled, 4 flat, 2 classes. Parameters: 4 x 3 x 3 x 3, four of BatchNorm, 2 x 4 and 2.
models::Model small_network() {
  test::NetworkBuilder net({3, 8, 8});
  auto x = net.conv_bn_relu("conv", net.input(), 3, 4);
  x = net.op("pool", models::GlobalAvgPool{}, {x});
  x = net.op("flatten", models::Flatten{}, {x});
  return net.finish(net.linear("fc", x, 4, 2), 2);
}
constexpr double kOutputs = 4 * (3 * 64 + 3 * 4 * 64 + 4 + 4 + 2),
                 kParameters = 4 * (108 + 16 + 10);
constexpr double kStep = kOutputs + 4 * 321 * 64;
constexpr double kFixed = 200e6 + 10 * kParameters + 4 * 4 * 800 * 64;

Recipe training() {
  return load_recipe("deploy", {"finetune.batch_size=64", "process.agreement_images=0"});
}

TEST(MemoryPlan, CountsATrainingStep) {
  Recipe recipe = training();
  const auto needs = memory_needs(small_network(), recipe);
  ASSERT_EQ(needs.size(), 1u);
  EXPECT_EQ(needs[0].key, "finetune.batch_size");
  EXPECT_DOUBLE_EQ(needs[0].each, kStep);
  EXPECT_DOUBLE_EQ(needs[0].bytes(), kFixed + 64 * kStep);
}

// Without a generator the images are in memory instead of its weights and maps.
TEST(MemoryPlan, CountsATrainingStepOnImagesOfTheRun) {
  Recipe recipe = training();
  recipe.finetune.images = 100;
  const auto needs = memory_needs(small_network(), recipe);
  ASSERT_EQ(needs.size(), 2u);
  EXPECT_EQ(needs[0].key, "generate.images.batch_size");
  EXPECT_EQ(needs[1].key, "finetune.batch_size");
  EXPECT_DOUBLE_EQ(needs[1].bytes(), 200e6 + 10 * kParameters + 100 * 4 * 3 * 64 + 64 * kOutputs);
}

// A bank takes the place of images that the run would make.
TEST(MemoryPlan, CountsNoOptimisedImagesWithABank) {
  Recipe recipe = training();
  recipe.finetune.images = 100;
  recipe.generate.bank = "bank.safetensors";
  const auto needs = memory_needs(small_network(), recipe);
  ASSERT_EQ(needs.size(), 1u);
  EXPECT_EQ(needs[0].key, "finetune.batch_size");
}

TEST(MemoryPlan, CountsTheStagesThatTheRecipeHas) {
  const auto keys = [](const std::string& name) {
    Recipe recipe = load_recipe(name);
    recipe.data.eval_data = "images";
    std::vector<std::string> keys;
    for (const auto& need : memory_needs(small_network(), recipe)) keys.push_back(need.key);
    return keys;
  };
  using Keys = std::vector<std::string>;
  EXPECT_EQ(keys("instant"), (Keys{"process.agreement_images", "data.eval_batch_size"}));
  EXPECT_EQ(keys("instant+gptq"),
            (Keys{"process.agreement_images", "data.eval_batch_size", "reconstruct.memory"}));
  EXPECT_EQ(keys("instant+gptq+channel_correction"),  // a row each of rounding and correction
            (Keys{"process.agreement_images", "data.eval_batch_size", "generate.images.batch_size",
                  "reconstruct.memory", "reconstruct.memory"}));
  EXPECT_EQ(keys("instant+finetune_scales"),
            (Keys{"process.agreement_images", "data.eval_batch_size", "generate.images.batch_size",
                  "finetune.batch_size"}));
  EXPECT_EQ(keys("instant+gptq+optimised_leaves"),
            (Keys{"process.agreement_images", "data.eval_batch_size", "generate.images.batch_size",
                  "reconstruct.memory"}));
  EXPECT_EQ(keys("deploy_w3a3"),
            (Keys{"process.agreement_images", "data.eval_batch_size", "generate.images.batch_size",
                  "reconstruct.memory", "finetune.batch_size"}));
}

// The limit has room for ten images and a half.
TEST(MemoryPlan, FitsTheBatch) {
  Recipe recipe = training();
  recipe.process.memory_limit = {kFixed + 10.5 * kStep, false};
  Messages messages;
  fit_into_memory(small_network(), recipe, messages);
  EXPECT_EQ(recipe.finetune.batch_size, 10);
  EXPECT_NE(messages.all.find("finetune.batch_size is therefore 10 instead of 64"),
            std::string::npos)
      << messages.all;
}

// In a child, whose limit goes with it.
TEST(ProcessMemory, EndsAsAnErrorWhereTheLimitIsReached) {
  const auto reserves = [](std::int64_t bytes) {
    try {
      at_boundary([&] { return at::empty({bytes}, at::kChar).zero_(); });
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::out_of_memory);
      return false;
    }
  };
  const pid_t child = ::fork();
  if (child == 0) {
    limit_process_memory({});
    const bool before = reserves(2'000'000'000);
    limit_process_memory({1e9, false});
    ::_exit(before && reserves(100'000'000) && !reserves(2'000'000'000) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_NEAR(bytes_of({50, true}), 0.5 * bytes_of({100, true}), 1);
  EXPECT_EQ(bytes_of({3e9, false}), 3e9);
}

TEST(MemoryPlan, ChangesNothingWhereAllFitsOrNoLimitIsSet) {
  for (const Budget limit : {Budget{}, Budget{1e15, false}, Budget{100, true}}) {
    Recipe recipe = training();
    recipe.process.memory_limit = limit;
    Messages messages;
    fit_into_memory(small_network(), recipe, messages);
    EXPECT_EQ(recipe.finetune.batch_size, 64);
    EXPECT_EQ(messages.all, "");
  }
}

TEST(MemoryPlan, RefusesWhatCannotFit) {
  Recipe recipe = training();
  recipe.process.memory_limit = {100e6, false};
  Observer silent;
  const std::string message = test::error_message(
      ErrorCode::out_of_memory, [&] { fit_into_memory(small_network(), recipe, silent); });
  EXPECT_NE(message.find("fine-tuning needs about 201 MB with finetune.batch_size=2"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("--memory_limit is 100 MB"), std::string::npos) << message;
}

TEST(MemoryPlan, BoundsTheBatchOfOptimisedImages) {
  constexpr double kUnlimited = std::numeric_limits<double>::infinity();
  Recipe recipe;
  const auto model = small_network();
  EXPECT_EQ(optimised_at_once(model, recipe, 1000, kUnlimited), 1000);
  const double one = 2.4 * kOutputs;
  recipe.process.memory_limit = {200e6 + 10 * kParameters + 7.5 * one, false};
  EXPECT_EQ(optimised_at_once(model, recipe, 1000, kUnlimited), 7);
  EXPECT_EQ(optimised_at_once(model, recipe, 1000, 3.5 * one), 3);
  EXPECT_EQ(optimised_at_once(model, recipe, 5, kUnlimited), 5);
  recipe.process.memory_limit = {1, false};
  EXPECT_EQ(optimised_at_once(model, recipe, 1000, kUnlimited), 2);
}

TEST(MemoryPlan, NamesHalfTheBatchAfterAFailure) {
  EXPECT_EQ(smaller_plan(small_network(), training()), "--set finetune.batch_size=32");
  Recipe limited = training();
  limited.process.memory_limit = {(kFixed + 10.5 * kStep) / 0.75, false};
  EXPECT_EQ(smaller_plan(small_network(), limited), "--set finetune.batch_size=10");
}

}  // namespace
}  // namespace zsq::pipeline
