// SPDX-License-Identifier: Apache-2.0
#include "recipes/recipe.h"

#include <gtest/gtest.h>

#include <functional>

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
  EXPECT_HAS(error("\nkind: overlays\n"),
             "odd.yaml:2: 'overlays' is not a kind of recipe; did you");
  EXPECT_HAS(error("kind: [recipe]\n"), "odd.yaml:1: 'kind' is one word");
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
