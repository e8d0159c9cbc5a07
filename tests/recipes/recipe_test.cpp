// SPDX-License-Identifier: Apache-2.0
// Covers also core/enum_of, core/settings, quant/options, recipes/builtin, recipes/describe,
// recipes/options, train/options.
#include "recipes/recipe.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "core/error.h"
#include "tests/support/error_message.h"
#include "tests/support/temp_folder.h"

namespace zsq::recipe_test {
namespace {

class RecipeTest : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    return folder_.file(name, text).string();
  }

  test::TempFolder folder_;
};

std::string message_of(const std::function<void()>& action) {
  return test::error_message(ErrorCode::usage, action);
}

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
TEST(Recipe, RowsOfTheAblationAreWhatTheySay) {
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

TEST(Recipe, DefaultIsDeployW4A4WithEightBitEnds) {
  const Recipe recipe = load_recipe();
  EXPECT_EQ(recipe.name, "deploy");
  EXPECT_EQ(recipe.quantize.mode, Mode::deploy);
  EXPECT_EQ(recipe.quantize.weights.num_bits, 4);
  EXPECT_EQ(recipe.quantize.activations.num_bits, 4);
  EXPECT_EQ(recipe.quantize.first_last_bits, 8);
}

TEST_F(RecipeTest, EveryBuiltInResolvesAndReadsBackFromItsResolvedForm) {
  for (const std::string& name : recipe_names()) {
    const Recipe recipe = load_recipe(name);
    EXPECT_FALSE(recipe.about.empty()) << name;
    const std::string file = write("resolved.yaml", to_yaml(recipe));
    EXPECT_EQ(to_yaml(load_recipe(file)), to_yaml(recipe)) << name;
  }
}

// AIT table 1 and its schedule: 400 epochs of 200 iterations.
TEST(Recipe, PaperRowsHoldThePublishedSettings) {
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

TEST(Recipe, SwitchesAreAddedWithPlus) {
  const Recipe r = load_recipe("paper/ait_resnet18_w4a4+paper/published_quirks");
  EXPECT_EQ(r.finetune.inundation, Inundation::published);
  EXPECT_EQ(r.finetune.kl_reduction, KlReduction::mean);
  EXPECT_EQ(r.generate.superposing, Superposing::whole_batch);
  EXPECT_TRUE(r.generate.conditional_mix_average);
  EXPECT_EQ(r.generate.superposed_labels, 250);
}

TEST_F(RecipeTest, ExtendsAppliesParentsFirstAndOverridesLast) {
  write("parent.yaml", "finetune: {iterations: 10, batch_size: 20}\nprocess: {seed: 3}\n");
  const std::string child =
      write("child.yaml", "finetune:\n  iterations: 11\nextends: [deploy_cpu, parent.yaml]\n");
  const Recipe r = load_recipe(child, {"process.seed=4", "process.seed=5"});
  EXPECT_EQ(r.finetune.iterations, 11);
  EXPECT_EQ(r.finetune.batch_size, 20);
  EXPECT_EQ(r.process.seed, 5);
  EXPECT_EQ(r.process.checkpoint_every, load_recipe("deploy_cpu").process.checkpoint_every);
  const Recipe joined = load_recipe(write("joined.yaml", "extends: instant+gptq+parent.yaml\n"));
  EXPECT_EQ(joined.quantize.weights.rounding, WeightRounding::gptq);
  EXPECT_EQ(joined.process.seed, 3);
  EXPECT_EQ(load_recipe(write("instant+gptq.yaml", "extends: parent.yaml\n")).process.seed, 3);
}

TEST_F(RecipeTest, CyclesAreRefused) {
  write("a.yaml", "extends: b.yaml\n");
  const std::string b = write("b.yaml", "\nextends: a.yaml\n");
  const std::string message = message_of([&] { load_recipe(b); });
  EXPECT_HAS(message, "circle");
  EXPECT_HAS(message, "a.yaml");
}

TEST_F(RecipeTest, UnknownKeysNameFileLineAndNearest) {
  const std::string file = write("r.yaml", "finetune:\n  batch_size: 8\n  iteration: 5\n");
  const std::string message = message_of([&] { load_recipe(file); });
  EXPECT_HAS(message, "r.yaml:3");
  EXPECT_HAS(message, "'finetune.iteration' is not a recipe key");
  EXPECT_HAS(message, "did you mean 'finetune.iterations'");
  EXPECT_HAS(message_of([&] { load_recipe(write("s.yaml", "finetun:\n  lr: 1\n")); }), "'finetun'");
  EXPECT_HAS(message_of([] { load_recipe("deploy", {"batch_size=8"}); }), "'finetune.batch_size'");
  EXPECT_HAS(message_of([] { load_recipe("deplyo"); }), "did you mean 'deploy'");
}

// Names from before the first release are as unknown as any other, and lead to those of today where
// these are near.
TEST_F(RecipeTest, UnreleasedNamesAreUnknown) {
  const auto error = [](const std::string& o) {
    return message_of([&] { load_recipe("deploy", {o}); });
  };
  EXPECT_HAS(error("finetune.lr_scale=0.5"), "'finetune.lr_scale' is not a recipe key");
  EXPECT_HAS(error("finetune.checks=3"), "'finetune.checks' is not a recipe key");
}

TEST_F(RecipeTest, WrongTypesAndRangesNameKeyAndValue) {
  const auto error = [](const std::string& o) {
    return message_of([&] { load_recipe("deploy", {o}); });
  };
  EXPECT_HAS(error("finetune.iterations=many"),
             "finetune.iterations: 'many' is not a whole number");
  EXPECT_HAS(error("finetune.iterations=1.5"), "'1.5' is not a whole number");
  EXPECT_HAS(error("finetune.lr=nan"), "'nan' is not a number");
  EXPECT_HAS(error("quantize.weights.num_bits=9"),
             "quantize.weights.num_bits: 9 is outside its range, 2..8 bits");
  EXPECT_HAS(error("quantize.mode=papr"), "did you mean 'paper'");
  EXPECT_HAS(error("quantize.weights.per_channel=yes"), "'yes' is not true or false");
  EXPECT_HAS(error("finetune.milestones=0.5,1.5"), "1.5 is outside its range, 0..1");
  EXPECT_HAS(error("finetune.milestones=0.5,0.25"), "ascending");
  EXPECT_HAS(error("finetune.optimizer=adam"), "set finetune.inundation=off");
  EXPECT_HAS(error("quantize.split_channels=8"), "only quantize.equalize=depthwise");
  EXPECT_HAS(error("quantize.split_expansion=5"), "set split_expansion=0");
  EXPECT_HAS(error("finetune.loss_terms=perturbed_kl_divergence=1"), "there is none");
  EXPECT_HAS(error("finetune.lr"), "the value is missing");
  EXPECT_HAS(error("finetune=3"), "'finetune' is a section");
  EXPECT_HAS(error("process.time_budget=soon"), "10min");
  EXPECT_HAS(message_of([&] { load_recipe(write("l.yaml", "finetune: {lr: [1, 2]}\n")); }), "list");
  EXPECT_HAS(message_of([&] { load_recipe(write("t.yaml", "finetune: {lr: 1, lr: 2}\n")); }),
             "twice");
  EXPECT_HAS(message_of([&] { load_recipe(write("y.yaml", "finetune: {lr: 1\n")); }), "not YAML");
}

TEST_F(RecipeTest, OddFilesAreRefusedWithTheirPlace) {
  const auto error = [&](const std::string& text) {
    return message_of([&] { load_recipe(write("odd.yaml", text)); });
  };
  EXPECT_HAS(error(""), "a recipe is a map of sections");
  EXPECT_HAS(error("- finetune\n"), "a recipe is a map of sections");
  EXPECT_HAS(error("? [finetune, lr]\n: 1\n"), "odd.yaml:1: a key is a list or a map");
  EXPECT_HAS(error("about: []\n"), "odd.yaml:1: 'about' is one line of text");
  EXPECT_HAS(error("finetune: [lr]\n"), "'finetune' is a section");
  EXPECT_HAS(error("finetune:\n  lr:\n"), "'finetune.lr' has no value");
  EXPECT_HAS(error(std::string("\0\1\2\x80", 4)), "odd.yaml");
  EXPECT_HAS(message_of([&] { load_recipe(std::string(5000, 'x')); }), "is not a built-in recipe");
}

TEST(Recipe, ContradictionsAreNamed) {
  for (const char* recipe : {"deploy", "instant+gptq", "deploy+reconstruct"})
    load_recipe(recipe, {"quantize.weights.level_tables=int,fp4"});
  EXPECT_EQ(load_recipe("instant", {"quantize.weights.level_tables=int,fp4"})
                .quantize.weights.level_tables.size(),
            2U);
  EXPECT_EQ(load_recipe("instant+gptq+tables").quantize.weights.level_tables,
            std::vector{LevelTable::normal});
  EXPECT_HAS(message_of([] { load_recipe("instant", {"quantize.weights.level_choice=layer"}); }),
             "level_tables");
  EXPECT_HAS(message_of([] { load_recipe("instant", {"quantize.weights.level_tables=fp5"}); }),
             "did you mean 'fp4'");
  EXPECT_HAS(message_of([] { load_recipe("deploy", {"quantize.weights.range_every_step=true"}); }),
             "quantize.weights.range");
  EXPECT_HAS(message_of([] { load_recipe("deploy", {"quantize.first_last_bits=1"}); }), "2..8");
  EXPECT_HAS(message_of([] { load_recipe("deploy", {"quantize.second_input_bits=1"}); }), "2..8");
  EXPECT_HAS(message_of([] {
               load_recipe("deploy", {"export.onnx=false", "export.safetensors=false"});
             }),
             "nothing would be written");
  EXPECT_HAS(message_of([] {
               load_recipe("deploy", {"export.onnx=false", "export.packed=true"});
             }),
             "a form of model.onnx");
}

// A preset is a set of keys, so it replaces those before it; of resize and crop_fraction the last
// one counts.
TEST_F(RecipeTest, PreprocessingKeysApplyInOrder) {
  const std::string parent =
      write("parent.yaml", "data:\n  mean: [1, 2, 3]\n  preset: torchvision\n");
  Recipe recipe = load_recipe(parent);
  EXPECT_EQ(recipe.data.preset, "torchvision");
  EXPECT_EQ(recipe.data.mean, (std::vector<double>{1, 2, 3}));  // whatever the order of the lines
  apply_override(recipe, "data.resize=300");
  apply_override(recipe, "data.crop_fraction=0.5");
  EXPECT_EQ(recipe.data.resize, std::nullopt);
  apply_override(recipe, "data.resize=auto");
  EXPECT_EQ(recipe.data.crop_fraction, 0.5);
  const std::string file = write("resolved.yaml", to_yaml(recipe));
  EXPECT_EQ(to_yaml(load_recipe(file)), to_yaml(recipe));
  apply_override(recipe, "data.preset=cifar10");
  EXPECT_EQ(recipe.data.mean, std::nullopt);
  EXPECT_EQ(recipe.data.crop_fraction, std::nullopt);
}

}  // namespace
}  // namespace zsq::recipe_test
