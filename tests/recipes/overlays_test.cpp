// SPDX-License-Identifier: Apache-2.0
#include "recipes/overlays.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/error.h"
#include "tests/support/error_message.h"
#include "tests/support/temp_folder.h"

namespace zsq::overlays_test {
namespace {

std::string message_of(const std::function<void()>& action) {
  return test::error_message(ErrorCode::usage, action);
}

std::string load_error(const std::string& name, const std::vector<std::string>& set = {}) {
  return message_of([&] { load_recipe(name, set); });
}

// What a run of the recipe would say of its overlays; empty: they all count.
std::string effect_error(const std::string& name, const std::vector<std::string>& set = {}) {
  const Recipe recipe = load_recipe(name, set);
  try {
    require_effect(recipe);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    return error.what();
  }
  return "";
}

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << text

const std::vector<std::string> kW4A4{"quantize.weights.num_bits=4",
                                     "quantize.activations.num_bits=4"};

TEST(Overlays, ThatContradictEachOtherAreNamedWithBothValues) {
  const std::string message = load_error("instant+gptq+distill+tables");
  EXPECT_HAS(message, "'tables' sets finetune.iterations to 0, and 'distill' before it sets 800");
  EXPECT_HAS(message, "--set finetune.iterations=VALUE");
  EXPECT_HAS(message, "'overrides: [finetune.iterations]'");
  EXPECT_HAS(load_error("instant+gptq+finetune_scales+distill"), "finetune.lr");
  EXPECT_HAS(load_error("deploy+reconstruct+gptq"), "quantize.weights.rounding");
  // A recipe does not contradict its overlays: they are there to change it.
  EXPECT_EQ(load_recipe("deploy+reconstruct").finetune.iterations, 0);
  EXPECT_EQ(load_recipe("deploy_w3a3+distill_long").finetune.iterations, 4000);
}

TEST(Overlays, MayContradictWhereTheCommandHasTheLastWord) {
  const Recipe r = load_recipe("instant+gptq+distill+tables", {"finetune.iterations=70"});
  EXPECT_EQ(r.finetune.iterations, 70);
  EXPECT_HAS(load_error("instant+gptq+distill+tables", {"finetune.lr=1"}), "finetune.iterations");
}

TEST(Overlays, ReplaceWhatTheySayTheyReplace) {
  const test::TempFolder folder;
  const auto join = [&](const std::string& text) {
    return "instant+gptq+" + folder.file("mine.yaml", text).string();
  };
  const std::string images = "quantize: {gptq: {images: 9}}\n";
  EXPECT_HAS(load_error(join(images)), "quantize.gptq.images to 9, and 'gptq' before it sets 64");
  EXPECT_EQ(load_recipe(join("overrides: [quantize.gptq.images]\n" + images)).quantize.gptq.images,
            9);
  EXPECT_EQ(load_recipe(join("yields: [quantize.gptq.images]\n" + images)).quantize.gptq.images,
            64);
  EXPECT_HAS(load_error(join("overrides: [quantize.gptq.image]\n" + images)),
             "did you mean 'quantize.gptq.images'");
  EXPECT_HAS(load_error(join("yields: [gptq]\n")), "'gptq' is not a recipe key");
  // What a list extends is written by one author in this order: the last one wins.
  const auto list = folder.file("list.yaml", "extends: [instant, distill, tables]\n");
  EXPECT_EQ(load_recipe(list.string()).finetune.iterations, 0);
  const auto chain = folder.file("chain.yaml", "extends: instant+distill+tables\n");
  EXPECT_HAS(load_error(chain.string()), "chain.yaml:1");
}

TEST(Overlays, BlocksGoOnFromTheRoundingOfAnOverlay) {
  const std::string chain = "instant+gptq+tables+channel_correction+reconstruct";
  EXPECT_EQ(load_recipe(chain).quantize.weights.rounding, WeightRounding::gptq);
  EXPECT_EQ(load_recipe("deploy+reconstruct").quantize.weights.rounding, WeightRounding::nearest);
  EXPECT_EQ(load_recipe("deploy_w3a3").quantize.weights.rounding, WeightRounding::nearest);
}

TEST(Overlays, AreWhatIsJoinedToARecipe) {
  EXPECT_HAS(load_error("instant+deploy"), "'deploy' is a recipe of its own");
  EXPECT_HAS(load_error("deploy+ablation/15_gptq"), "kind: ablation");
  EXPECT_EQ(load_recipe("optimised_leaves").images.source, ImageSource::optimised);
}

TEST(Overlays, OfTheDocumentsCount) {
  for (const char* name :
       {"instant+gptq", "instant+tables", "instant+gptq+tables", "instant+distill",
        "instant+gptq+optimised_leaves", "instant+gptq+genie", "instant+gptq+finetune_scales",
        "instant+gptq+tables+finetune_scales", "instant+gptq+tables+channel_correction",
        "instant+gptq+tables+channel_correction+finetune_scales",
        "instant+gptq+tables+channel_correction+distill",
        "instant+gptq+tables+channel_correction+reconstruct", "deploy+gptq", "deploy+reconstruct",
        "deploy+reconstruct+genie", "deploy+reconstruct+optimised_leaves"})
    EXPECT_EQ(effect_error(name, kW4A4), "");
  for (const char* name : {"deploy_w3a3+distill", "deploy_w3a3+distill_long",
                           "deploy_w2+distill_long", "paper/ait_resnet20_cifar10_w4a4+paper/best",
                           "paper/ait_resnet18_w4a4+paper/published_quirks"})
    EXPECT_EQ(effect_error(name), "");
  EXPECT_EQ(effect_error("instant+gptq+tables", {"quantize.weights.num_bits=3"}), "");
  EXPECT_EQ(effect_error("instant+gptq+tables", {"mixed.target_size=50%"}), "");
}

TEST(Overlays, ThatDoNothingAreNamedWithTheReason) {
  EXPECT_HAS(effect_error("deploy+tables"),
             "'tables' ends the fine-tuning (finetune.iterations: 20000 before it, 0 after it)");
  EXPECT_HAS(effect_error("deploy_w3a3+tables"), "1000 before it");
  EXPECT_EQ(effect_error("deploy+tables", {"finetune.iterations=50"}), "");
  EXPECT_HAS(effect_error("instant+tables"), "weights of 3 and 4 bits, and these have 8");
  EXPECT_HAS(effect_error("instant+genie"), "'genie' does nothing: the recipe makes no images");
  EXPECT_HAS(effect_error("deploy+optimised_leaves"), "makes no images");
  EXPECT_HAS(effect_error("instant+gptq+gptq", kW4A4), "has that value already");
  EXPECT_HAS(effect_error("instant+gptq+paper/gdfq", kW4A4), "trains no generator");
  const test::TempFolder folder;
  const auto idle = [&](const std::string& text) {
    return effect_error("instant+gptq+" + folder.file("mine.yaml", text).string(), kW4A4);
  };
  EXPECT_HAS(idle("finetune: {lr: 0.5}\n"), "does not fine-tune");
  EXPECT_HAS(idle("reconstruct: {batch_size: 8}\n"), "reconstructs no blocks");
  EXPECT_HAS(idle("about: nothing\n"), "has that value already");
  EXPECT_EQ(idle("finetune: {lr: 0.5}\nprocess: {seed: 3}\n"), "");
}

}  // namespace
}  // namespace zsq::overlays_test
