// SPDX-License-Identifier: Apache-2.0
// Covers also pipeline/process_memory.
#include "pipeline/run/memory_plan.h"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "models/load.h"
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
constexpr double kFixed = 300e6 + 10 * kParameters + 4 * 4 * 800 * 64;

Recipe training() {
  return load_recipe("deploy", {"finetune.batch_size=64", "process.agreement_images=0"});
}

TEST(MemoryPlan, CountsATrainingStep) {
  Recipe recipe = training();
  const auto needs = memory_needs(small_network(), sizes_of(small_network()), recipe);
  ASSERT_EQ(needs.size(), 1u);
  EXPECT_EQ(needs[0].key, "finetune.batch_size");
  EXPECT_DOUBLE_EQ(needs[0].each, kStep);
  EXPECT_DOUBLE_EQ(needs[0].bytes(), kFixed + 64 * kStep);
}

// Without a generator the images are in memory instead of its weights and maps.
TEST(MemoryPlan, CountsATrainingStepOnImagesOfTheRun) {
  Recipe recipe = training();
  recipe.finetune.images = 100;
  const auto needs = memory_needs(small_network(), sizes_of(small_network()), recipe);
  ASSERT_EQ(needs.size(), 3u);
  EXPECT_EQ(needs[0].key, "generate.images.batch_size");
  EXPECT_EQ(needs[1].key, "finetune.images");
  EXPECT_EQ(needs[2].key, "finetune.batch_size");
  EXPECT_DOUBLE_EQ(needs[2].bytes(), 300e6 + 10 * kParameters + 100 * 4 * 3 * 64 + 64 * kOutputs);
}

// A bank takes the place of images that the run would make.
TEST(MemoryPlan, CountsNoOptimisedImagesWithABank) {
  Recipe recipe = training();
  recipe.finetune.images = 100;
  recipe.generate.bank = "bank.safetensors";
  const auto needs = memory_needs(small_network(), sizes_of(small_network()), recipe);
  ASSERT_EQ(needs.size(), 2u);
  EXPECT_EQ(needs[0].key, "finetune.images");
  EXPECT_EQ(needs[1].key, "finetune.batch_size");
}

// Values of 16 images between blocks: 4 x 8 x 8 at the widest end, of both networks.
TEST(MemoryPlan, CountsImagesValuesAndBatchOfRounding) {
  Recipe recipe =
      load_recipe("instant+gptq", {"process.agreement_images=0", "quantize.gptq.images=16"});
  const auto needs = memory_needs(small_network(), sizes_of(small_network()), recipe);
  ASSERT_EQ(needs.size(), 3u);
  constexpr double kAlone = 300e6 + 10 * kParameters, kImage = 4 * 3 * 64, kLargest = 4 * 4 * 64;
  EXPECT_DOUBLE_EQ(needs[0].bytes(), kAlone + 16 * kImage + 16 * 1048576.0 + 2 * 7 * kLargest);
  EXPECT_DOUBLE_EQ(needs[1].bytes(), kAlone + 16 * kImage + 2048 * 1048576.0 + 2 * 7 * kLargest);
  EXPECT_DOUBLE_EQ(needs[2].bytes(), kAlone + 16 * kImage + 16 * 2 * kLargest + 16 * 7 * kLargest);
}

models::Model efficientnet_lite0() {
  return models::build("efficientnet_lite0", {}, {.zero_weights = true});
}

TEST(MemoryPlan, CountsRewritesOfTheNetwork) {
  const auto keys = [](const char* bits) {
    Recipe recipe = load_recipe("instant+gptq+channel_correction",
                                {std::string("quantize.activations.num_bits=") + bits});
    std::vector<std::string> stages;
    for (const auto& need :
         memory_needs(efficientnet_lite0(), sizes_of(efficientnet_lite0()), recipe))
      if (need.key == "quantize.rewrite_batch_size") stages.push_back(need.stage);
    return stages;
  };
  EXPECT_EQ(keys("4"), (std::vector<std::string>{"channel splitting", "rotation"}));
  EXPECT_EQ(keys("8"), std::vector<std::string>());
}

// A generator's weights and their moments alone take 0.6 GB.
TEST(MemoryPlan, FitsEveryRecipeOfALargeNetworkInto1GB) {
  const auto network = efficientnet_lite0();
  for (const std::string& name : recipe_names()) {
    if (load_recipe(name).kind == RecipeKind::overlay) continue;
    for (const char* overlays :
         {"", "+gptq+tables+channel_correction", "+gptq+genie", "+gptq+tables+distill",
          "+gptq+reconstruct", "+gptq+finetune_scales"}) {
      if (*overlays && name != "instant") continue;
      Recipe recipe = load_recipe(name + overlays);
      recipe.process.memory_limit = {1e9, false};
      Observer silent;
      fit_into_memory(network, recipe, silent);
      for (const auto& need : memory_needs(network, sizes_of(network), recipe))
        EXPECT_LE(need.bytes(), 1e9) << name << ": " << need.stage << " by " << need.key;
    }
  }
}

TEST(MemoryPlan, OptimisesPixelsWhereAGeneratorForEachBatchHasNoRoom) {
  const auto source = [](double limit) {
    Recipe recipe = load_recipe("instant+gptq+genie");
    recipe.process.memory_limit = {limit, false};
    Observer silent;
    fit_into_memory(efficientnet_lite0(), recipe, silent);
    return recipe.images.source;
  };
  EXPECT_EQ(source(1e9), ImageSource::optimised);
  EXPECT_EQ(source(3e9), ImageSource::genie);
}

TEST(MemoryPlan, CountsTheStagesThatTheRecipeHas) {
  const auto keys = [](const std::string& name) {
    Recipe recipe = load_recipe(name);
    recipe.data.eval_data = "images";
    std::vector<std::string> keys;
    for (const auto& need : memory_needs(small_network(), sizes_of(small_network()), recipe))
      keys.push_back(need.key);
    return keys;
  };
  using Keys = std::vector<std::string>;
  EXPECT_EQ(keys("instant"), (Keys{"process.agreement_images", "data.eval_batch_size"}));
  const Keys measuring{"process.agreement_images", "data.eval_batch_size"},
      making{"generate.images.batch_size"},
      rounding{"quantize.gptq.images", "reconstruct.memory", "quantize.layer_batch_size"},
      correcting{"quantize.channel_correction", "reconstruct.memory", "quantize.layer_batch_size"},
      reconstructing{"reconstruct.images", "reconstruct.memory", "reconstruct.batch_size"},
      tuning{"finetune.images", "finetune.batch_size"};
  const auto all = [](std::initializer_list<Keys> parts) {
    Keys keys;
    for (const Keys& part : parts) keys.insert(keys.end(), part.begin(), part.end());
    return keys;
  };
  EXPECT_EQ(keys("instant+gptq"), all({measuring, rounding}));
  EXPECT_EQ(keys("instant+gptq+channel_correction"),
            all({measuring, making, rounding, correcting}));
  EXPECT_EQ(keys("instant+finetune_scales"), all({measuring, making, tuning}));
  EXPECT_EQ(keys("deploy_w3a3"), all({measuring, making, reconstructing, tuning}));
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
  EXPECT_NE(message.find("optimised images needs about 300 MB with generate.images.batch_size=2"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("--memory_limit is 100 MB"), std::string::npos) << message;
}

// The limit that a refusal names is one with which no stage is refused, and hardly more than that.
TEST(MemoryPlan, NamesALimitThatDoes) {
  Recipe automatic = load_recipe("auto");
  for (const auto& [network, recipe] :
       {std::pair{small_network(), training()}, {efficientnet_lite0(), automatic}}) {
    const auto refusal = [&, &network = network, &recipe = recipe](double limit) {
      Recipe copy = recipe;
      copy.process.memory_limit = {limit, false};
      Observer silent;
      try {
        fit_into_memory(network, copy, silent);
      } catch (const Error& error) {
        return std::string(error.what());
      }
      return std::string();
    };
    const std::string message = refusal(100e6);
    const auto end = message.find(" MB would do");
    ASSERT_NE(end, std::string::npos) << message;
    const double named = 1e6 * std::stod(message.substr(message.rfind(' ', end - 1) + 1));
    EXPECT_EQ(refusal(named), "") << message;
    EXPECT_NE(refusal(named - 5e6), "") << message;
  }
}

TEST(MemoryPlan, BoundsTheBatchOfOptimisedImages) {
  constexpr double kUnlimited = std::numeric_limits<double>::infinity();
  Recipe recipe;
  const auto model = small_network();
  EXPECT_EQ(optimised_at_once(model, recipe, 1000, kUnlimited), 1000);
  // Two maps of 4 x 8 x 8, as BatchNorm and ReLU are one node; what follows; gradients.
  const double one = 4 * (2 * 4 * 64 + 4 + 4 + 2) + 3 * (4 * 4 * 64);
  recipe.process.memory_limit = {300e6 + 10 * kParameters + 7.5 * one, false};
  EXPECT_EQ(optimised_at_once(model, recipe, 1000, kUnlimited), 7);
  EXPECT_EQ(optimised_at_once(model, recipe, 1000, 3.5 * 2.4 * kOutputs), 3);
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
