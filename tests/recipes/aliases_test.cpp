// SPDX-License-Identifier: Apache-2.0
#include "recipes/aliases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/error.h"
#include "recipes/recipe.h"
#include "tests/support/error_message.h"
#include "tests/support/temp_folder.h"

namespace zsq {
namespace {

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << text

TEST(Aliases, FormerNamesAreReadWithAWarning) {
  const test::TempFolder folder;
  const auto file = folder.file("old.yaml",
                                "extends: [instant, hessian]\n"
                                "quantize:\n  hessian:\n    drift: 0.25\n"
                                "reconstruct:\n  drop: 0.75\n"
                                "generate:\n  images:\n    source: drawn\n");
  const Recipe recipe = load_recipe(file.string(), {"finetune.lr_scale=0.5"});
  EXPECT_EQ(recipe.quantize.gptq.error_compensation, 0.25);
  EXPECT_EQ(recipe.reconstruct.qdrop_probability, 0.75);
  EXPECT_EQ(recipe.images.source, ImageSource::dead_leaves);
  EXPECT_EQ(recipe.finetune.scale_lr, 0.5);
  std::string warnings;
  for (const std::string& warning : recipe.warnings) warnings += warning + "\n";
  EXPECT_HAS(warnings, "'quantize.hessian.drift' is now called 'quantize.gptq.error_compensation'");
  EXPECT_HAS(warnings, "old.yaml:6: 'reconstruct.drop' is now called");
  EXPECT_HAS(warnings, "'drawn' is now called 'dead_leaves'");
  EXPECT_HAS(warnings, "'finetune.lr_scale' is now called 'finetune.scale_lr'");
  EXPECT_EQ(to_yaml(recipe).find("hessian"), std::string::npos);
  const auto both =
      folder.file("both.yaml", "reconstruct:\n  drop: 0.5\n  qdrop_probability: 0.5\n");
  EXPECT_HAS(test::error_message(ErrorCode::usage, [&] { load_recipe(both.string()); }),
             "given twice");
}

TEST(Aliases, AFeatureLossAndItsWeightAreTermsOfTheLoss) {
  const Recipe recipe =
      load_recipe("deploy", {"finetune.features=attention", "finetune.feature_weight=50"});
  ASSERT_EQ(recipe.finetune.loss_terms.size(), 2U);
  EXPECT_EQ(recipe.finetune.loss_terms[0].term, LossTerm::kl_divergence);
  EXPECT_EQ(recipe.finetune.loss_terms[1].term, LossTerm::channel_attention);
  EXPECT_EQ(recipe.finetune.loss_terms[1].weight, 50);
  EXPECT_EQ(recipe.warnings.size(), 3U);
  EXPECT_HAS(to_yaml(recipe), "loss_terms: [kl_divergence=1, channel_attention=50]");
  EXPECT_HAS(test::error_message(ErrorCode::usage,
                                 [] { load_recipe("deploy", {"finetune.feature_weight=50"}); }),
             "none was chosen before it");
  EXPECT_HAS(test::error_message(ErrorCode::usage,
                                 [] { load_recipe("deploy", {"finetune.loss_terms=kl"}); }),
             "kl_divergence");
}

// Every former name leads to one that exists, and none is in use again.
TEST(Aliases, FormerNamesLeadToNamesOfToday) {
  std::set<std::string> keys;
  for (const SettingHelp& setting : describe_settings(Recipe{})) keys.insert(setting.key);
  const auto names = recipe_names();
  for (const auto& [before, now] : recipes::former_keys()) {
    EXPECT_TRUE(keys.contains(std::string(now))) << now;
    EXPECT_FALSE(keys.contains(std::string(before))) << before;
  }
  for (const auto& [before, now] : recipes::former_recipes()) {
    EXPECT_TRUE(std::count(names.begin(), names.end(), now)) << now;
    EXPECT_FALSE(std::count(names.begin(), names.end(), before)) << before;
  }
}

}  // namespace
}  // namespace zsq
