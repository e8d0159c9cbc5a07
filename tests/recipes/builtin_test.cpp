// SPDX-License-Identifier: Apache-2.0
// The recipes that the program brings along.
#include "recipes/builtin.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "recipes/recipe.h"

namespace zsq::builtin_test {
namespace {

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << text

// Keys whose lines differ between two recipes, but for name and description.
std::set<std::string> changed_keys(const std::string& a, const std::string& b) {
  const auto lines = [](const std::string& name) {
    std::map<std::string, std::string> lines;  // by path of the key
    std::vector<std::string> path;
    std::istringstream text(to_yaml(load_recipe(name)));
    for (std::string line; std::getline(text, line);) {
      const auto start = line.find_first_not_of(' '), colon = line.find(':');
      if (start == std::string::npos || colon == std::string::npos) continue;
      path.resize(start / 2);
      path.push_back(line.substr(start, colon - start));
      std::string key;
      for (const auto& part : path) key += (key.empty() ? "" : ".") + part;
      lines[key] = line.substr(colon + 1);
    }
    return lines;
  };
  const auto before = lines(a), after = lines(b);
  EXPECT_EQ(before.size(), after.size());
  std::set<std::string> changed;
  for (const auto& [key, value] : before)
    if (key != "about" && key != "name" && after.at(key) != value) changed.insert(key);
  return changed;
}

// A row is one step from another, and no row takes ranges on images of a network that has learnt
// nothing.
TEST(Builtin, RowsOfTheAblationAreWhatTheySay) {
  using Keys = std::set<std::string>;
  const std::string r = "ablation/";
  EXPECT_EQ(changed_keys(r + "01_min_max", r + "02_mse_ranges"),
            (Keys{"quantize.weights.range", "quantize.activations.range"}));
  EXPECT_EQ(changed_keys(r + "02_mse_ranges", r + "13_reconstruct"),
            (Keys{"reconstruct.iterations", "reconstruct.images",
                  "reconstruct.augmentations_per_image"}));
  EXPECT_EQ(changed_keys(r + "08_crossing_rate", r + "09_learned_scales"),
            (Keys{"finetune.learnable_scales"}));
  for (const std::string& name : recipe_names()) {
    if (!name.starts_with(r)) continue;
    const Recipe recipe = load_recipe(name);
    const bool from_images = recipe.quantize.activations.range != ActivationRange::bn_statistics;
    const bool whole_bank = !recipe.generate.bank.empty() &&
                            (recipe.generate.bank_share == 1 || recipe.reconstruct.iterations > 0);
    EXPECT_TRUE(!from_images || whole_bank || recipe.finetune.iterations > 0) << name;
  }
}

// AIT table 1 and its schedule: 400 epochs of 200 iterations.
TEST(Builtin, PaperRowsHoldThePublishedSettings) {
  struct Row {
    const char* name;
    std::int64_t bits, batch, labels;
    double warmup, crossing_rate, share;
    const char* top1;
  };
  for (const Row& row : {Row{"resnet20_cifar10", 4, 200, 2, 4. / 400, 1e-3, 0.4, "91.23"},
                         {"resnet20_cifar10", 5, 200, 2, 4. / 400, 1e-3, 0.4, "93.43"},
                         {"resnet20_cifar100", 4, 200, 25, 4. / 400, 1e-3, 0.4, "65.40"},
                         {"resnet20_cifar100", 5, 200, 25, 4. / 400, 1e-3, 0.4, "69.26"},
                         {"resnet18", 4, 16, 250, 50. / 400, 1e-4, 0.4, "66.83"},
                         {"resnet18", 5, 16, 250, 50. / 400, 1e-4, 0.4, "69.22"},
                         {"resnet50", 4, 16, 100, 50. / 400, 1e-4, 0.7, "67.63"},
                         {"resnet50", 5, 16, 100, 50. / 400, 1e-4, 0.7, "75.54"},
                         {"mobilenet_v2", 4, 16, 250, 50. / 400, 1e-4, 0.4, "66.81"},
                         {"mobilenet_v2", 5, 16, 250, 50. / 400, 1e-4, 0.4, "71.68"}}) {
    const std::string bits = std::to_string(row.bits);
    const Recipe r = load_recipe(std::string("paper/ait_") + row.name + "_w" + bits + "a" + bits);
    EXPECT_EQ(r.quantize.mode, Mode::paper) << r.name;
    EXPECT_EQ(r.quantize.weights.num_bits, row.bits) << r.name;
    EXPECT_EQ(r.quantize.activations.num_bits, row.bits) << r.name;
    EXPECT_EQ(r.quantize.first_last_bits, 0) << r.name;
    EXPECT_TRUE(r.quantize.weights.range_every_step) << r.name;
    EXPECT_EQ(r.quantize.activations.range, ActivationRange::ema) << r.name;
    EXPECT_EQ(r.finetune.iterations, 400 * 200) << r.name;
    EXPECT_EQ(r.finetune.batch_size, row.batch) << r.name;
    EXPECT_DOUBLE_EQ(r.finetune.warmup, row.warmup) << r.name;
    EXPECT_DOUBLE_EQ(r.finetune.crossing_rate, row.crossing_rate) << r.name;
    EXPECT_EQ(r.finetune.inundation, Inundation::exact) << r.name;
    EXPECT_EQ(r.generate.superposed_labels, row.labels) << r.name;
    EXPECT_DOUBLE_EQ(r.generate.superposed_share, row.share) << r.name;
    EXPECT_EQ(r.generate.latent_width, row.batch == 200 ? 64 : 100) << r.name;
    EXPECT_HAS(r.expects, row.top1);
  }
}

TEST(Builtin, KindFollowsFromTheFileOrItsFolder) {
  std::map<RecipeKind, int> counts;
  for (const std::string& name : recipe_names()) {
    const Recipe recipe = load_recipe(name);
    const auto in = [&](const char* folder) { return name.starts_with(folder); };
    EXPECT_EQ(recipe.kind == RecipeKind::paper, in("paper/")) << name;
    EXPECT_EQ(recipe.kind == RecipeKind::ablation, in("ablation/")) << name;
    EXPECT_EQ(recipe_source(name).starts_with("kind: "), !in("paper/") && !in("ablation/")) << name;
    ++counts[recipe.kind];
  }
  EXPECT_EQ(counts[RecipeKind::overlay], 9);
  EXPECT_EQ(load_recipe("deploy_w3a3").kind, RecipeKind::recipe);  // extends overlays
}

// What `zsq recipes` shows to every user, none of it taken over from what a recipe extends.
TEST(Builtin, TenSayWhenToTakeThemAndWhatTheyCost) {
  std::set<std::string> ten;
  for (const std::string& name : recipe_names()) {
    const Recipe recipe = load_recipe(name);
    EXPECT_EQ(recipe.when.empty(), recipe.seconds.empty()) << name;
    EXPECT_EQ(recipe.when.empty(), recipe.loss.empty()) << name;
    if (recipe.when.empty()) continue;
    ten.insert(name);
    EXPECT_GT(std::stod(recipe.seconds), 0) << name;
    EXPECT_HAS(recipe.loss, " (W");
  }
  EXPECT_EQ(ten, (std::set<std::string>{"auto", "channel_correction", "deploy_w2", "deploy_w3a3",
                                        "distill", "distill_long", "gptq", "instant", "reconstruct",
                                        "tables"}));
}

TEST(Builtin, TwoBitWeightsHaveOneRecipe) {
  const Recipe r = load_recipe("deploy_w2");
  EXPECT_EQ(r.quantize.weights.num_bits, 2);
  EXPECT_EQ(r.quantize.activations.num_bits, 4);
  EXPECT_EQ(changed_keys("deploy_w3a3", "deploy_w2"),
            (std::set<std::string>{"quantize.weights.num_bits", "quantize.activations.num_bits",
                                   "process.agreement_images"}));
}

}  // namespace
}  // namespace zsq::builtin_test
