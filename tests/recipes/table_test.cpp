// SPDX-License-Identifier: Apache-2.0
#include "recipes/table.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <functional>

#include "core/error.h"
#include "recipes/recipe.h"
#include "tests/support/error_message.h"
#include "tests/support/temp_folder.h"

namespace zsq {
namespace {

class TableTest : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    return folder_.file(name, text).string();
  }
  std::string message_of(const std::string& text) const {
    const std::string file = write("table.yaml", text);
    return test::error_message(ErrorCode::usage, [&] { load_table(file); });
  }
  test::TempFolder folder_;
};

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << text

std::string two_digits(double value) {
  char text[16];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

// The recipe of a row says by itself what was published, with the teacher's accuracy.
TEST(Table, AitTable1IsWhatItsRecipesExpect) {
  const Table table = load_table("ait_table1");
  int rows = 0;
  for (const TableRow& row : table.rows) {
    if (!row.name.starts_with("qimera_ait_")) continue;
    ++rows;
    const Recipe recipe = load_recipe(row.recipe);
    EXPECT_HAS(recipe.expects, two_digits(row.published.value()));
    EXPECT_HAS(recipe.expects, two_digits(table.networks.at(row.network).top1));
    EXPECT_EQ(recipe.data.preset, table.networks.at(row.network).preset) << row.name;
    const std::string bits = std::to_string(recipe.quantize.weights.num_bits);
    EXPECT_TRUE(row.name.ends_with("_w" + bits + "a" + bits)) << row.name;
  }
  EXPECT_EQ(rows, 10);
}

TEST(Table, EveryBuiltInTableSaysWhatItNeeds) {
  EXPECT_GE(table_names().size(), 6u);
  for (const std::string& name : table_names()) {
    const Table table = load_table(name);
    EXPECT_FALSE(table.about.empty()) << name;
    EXPECT_FALSE(table.rows.empty()) << name;
    for (const TableRow& row : table.rows) {
      const Recipe recipe = load_recipe(row.recipe, row.settings);
      if (row.network.empty()) continue;
      EXPECT_TRUE(row.published.has_value()) << row.name;
      EXPECT_FALSE(table.source.empty()) << name;
      // The bits in a name are those of the run.
      const std::string bits = "_w" + std::to_string(recipe.quantize.weights.num_bits) + "a" +
                               std::to_string(recipe.quantize.activations.num_bits);
      EXPECT_TRUE(row.name.ends_with(bits)) << row.name << " " << bits;
      const TableNetwork& network = table.networks.at(row.network);
      EXPECT_GT(network.top1, row.published.value() - 1) << row.name;
      EXPECT_FALSE(network.files.empty()) << row.network;
      for (const WeightsFile& file : network.files) EXPECT_FALSE(file.from.empty()) << file.name;
      EXPECT_GT(table.data_sets.at(network.data_set).images, 0);
      EXPECT_EQ(row.bank_images > 0, !recipe.generate.bank.empty()) << row.name;
    }
  }
}

TEST(Table, QimeraAloneTakesPlainStepsWithCrossEntropy) {
  const Recipe recipe = load_recipe("paper/ait_resnet50_w4a4+paper/qimera");
  EXPECT_EQ(recipe.finetune.inundation, Inundation::off);
  ASSERT_EQ(recipe.finetune.loss_terms.size(), 2u);
  EXPECT_EQ(recipe.finetune.loss_terms[0].term, LossTerm::cross_entropy);
  EXPECT_EQ(recipe.generate.superposing, Superposing::whole_batch);
  EXPECT_EQ(recipe.generate.superposed_share, 0.7);  // of ResNet-50's row
}

TEST_F(TableTest, AFileMayBringItsOwnNetworksAndData) {
  const Table table = load_table(write("mine.yaml", R"(
about: mine
version: 3
seeds: [4, 5]
tolerance: 0.25
data_sets:
  mine: {about: my images, from: a shelf, images: 7}
networks:
  net: {about: my network, data_set: mine, top1: 12.5, files: [{name: a.onnx, from: b, sha256: c}]}
rows:
  - {name: one, network: net, recipe: instant, settings: [process.threads=1], published: 11}
)"));
  EXPECT_EQ(table.name, "mine");
  EXPECT_EQ(table.version, 3);
  EXPECT_EQ(table.seeds, (std::vector<std::int64_t>{4, 5}));
  EXPECT_EQ(table.tolerance, 0.25);
  EXPECT_EQ(table.networks.at("net").top1, 12.5);
  EXPECT_EQ(table.networks.at("net").files.at(0).sha256, "c");
  EXPECT_EQ(table.data_sets.at("mine").images, 7);
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.rows[0].settings, (std::vector<std::string>{"process.threads=1"}));
  EXPECT_EQ(table.rows[0].published, 11);
  EXPECT_TRUE(table.networks.contains("resnet18_pytorchcv"));  // the built-in ones stay
}

TEST_F(TableTest, AFolderIsATableOfItsRecipes) {
  std::filesystem::create_directory(folder_ / "rows");
  write("rows/2.yaml", "about: b\nextends: instant\n");
  write("rows/1.yaml", "about: a\nextends: instant\n");
  const Table table = load_table((folder_.path() / "rows").string());
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[0].name, "1");
  EXPECT_EQ(load_recipe(table.rows[1].recipe).about, "b");
}

TEST_F(TableTest, WhatIsWrongIsNamedWithItsLine) {
  EXPECT_HAS(message_of("about: x\nrowz: []\n"), "table.yaml:2");
  EXPECT_HAS(message_of("about: x\nrowz: []\n"), "'rows'");
  const std::string row = "about: x\nrows:\n  - {name: a, recipe: ";
  EXPECT_HAS(message_of(row + "instnat}\n"), "did you mean 'instant'");
  EXPECT_HAS(message_of(row + "instant, network: resnet18}\n"), "'resnet18' is not a network");
  EXPECT_HAS(message_of(row + "instant, settings: [quantize.x=1]}\n"), "quantize.x");
  EXPECT_HAS(message_of(row + "instant, published: many}\n"), "'many' is not a number");
  EXPECT_HAS(message_of(row + "instant}\n  - {name: a, recipe: auto}\n"), "twice");
  EXPECT_HAS(message_of("rows: [{recipe: instant}]\n"), "a name and a recipe");
  const std::string unknown =
      test::error_message(ErrorCode::usage, [] { load_table("ait_tabel1"); });
  EXPECT_HAS(unknown, "did you mean 'ait_table1'");
}

}  // namespace
}  // namespace zsq
