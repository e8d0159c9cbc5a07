// SPDX-License-Identifier: Apache-2.0
// Values as a recipe and a command line write them.
#include "recipes/values.h"

#include <gtest/gtest.h>

#include <functional>

#include "recipes/recipe.h"
#include "tests/support/error_message.h"
#include "tests/support/temp_folder.h"

namespace zsq::values_test {
namespace {

std::string message_of(const std::function<void()>& action) {
  return test::error_message(ErrorCode::usage, action);
}

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << text

TEST(Values, DurationsAndListsReadInEveryForm) {
  const auto seconds = [](const std::string& text) {
    return load_recipe("deploy", {"process.time_budget=" + text}).process.time_budget.seconds;
  };
  EXPECT_EQ(seconds("600"), 600);
  EXPECT_EQ(seconds("600s"), 600);
  EXPECT_EQ(seconds("10min"), 600);
  EXPECT_EQ(seconds("1.5h"), 5400);
  const std::vector<double> expected{0.25, 0.5};
  EXPECT_EQ(load_recipe("deploy", {"finetune.milestones=0.25,0.5"}).finetune.milestones, expected);
  EXPECT_EQ(load_recipe("deploy", {"finetune.milestones=[0.25, 0.5]"}).finetune.milestones,
            expected);
}

TEST(Values, PreprocessingReadsInEveryForm) {
  const auto data = [](const std::string& override) {
    return load_recipe("deploy", {override}).data;
  };
  EXPECT_EQ(data("data.size=240").size, (ImageSize{240, 240}));
  for (const char* text : {"240x320", "240,320", "[240, 320]"})
    EXPECT_EQ(data("data.size=" + std::string(text)).size, (ImageSize{240, 320})) << text;
  const std::vector<double> mean{0.485, 0.456, 0.406};
  EXPECT_EQ(data("data.mean=[0.485, 0.456, 0.406]").mean, mean);
  EXPECT_EQ(data("data.mean=0.485,0.456,0.406").mean, mean);
  EXPECT_EQ(data("data.mean=127").mean, std::vector<double>{127});
  EXPECT_EQ(data("data.antialias=false").antialias, false);
  EXPECT_EQ(data("data.antialias=auto").antialias, std::nullopt);
  EXPECT_EQ(data("data.interpolation=lanczos").interpolation, Interpolation::lanczos);
  EXPECT_HAS(message_of([&] { data("data.size=240x"); }), "data.size");
  EXPECT_HAS(message_of([&] { data("data.size=1x2x3"); }), "240x320");
  EXPECT_HAS(message_of([&] { data("data.size=0"); }), "1..8192");
  EXPECT_HAS(message_of([&] { data("data.std=0.2,0,0.2"); }), "data.std");
  EXPECT_HAS(message_of([&] { data("data.interpolation=cubic"); }), "bicubic");
  EXPECT_HAS(message_of([&] { data("data.crop_fraction=87.5"); }), "0.01..1");
}

TEST(Values, BudgetsReadInEveryForm) {
  const auto size = [](const std::string& text) {
    return load_recipe("deploy", {"mixed.target_size=" + text}).mixed.target_size;
  };
  for (const char* text : {"600000", "600kB", "0.6MB", "0.6M", "6e5"}) {
    EXPECT_EQ(size(text).amount, 600000) << text;
    EXPECT_FALSE(size(text).percent);
  }
  EXPECT_EQ(size("12.5%").amount, 12.5);
  EXPECT_TRUE(size("12.5%").percent);
  EXPECT_EQ(load_recipe("deploy", {"mixed.target_bops=1.2G"}).mixed.target_bops.amount, 1.2e9);
  for (const char* text : {"much", "5%%", "5 kB", "-", "5kk"})
    EXPECT_HAS(message_of([&] { size(text); }), "an amount like 120kB") << text;
  EXPECT_HAS(message_of([&] { size("-5kB"); }), "outside its range");
  EXPECT_HAS(message_of([] {
               load_recipe("deploy", {"mixed.target_size=50%", "mixed.target_bops=50%"});
             }),
             "one budget");
  EXPECT_EQ(load_recipe("deploy", {"mixed.target_cost=1.5k", "mixed.cost_table=costs.csv"})
                .mixed.target_cost.amount,
            1500);
  EXPECT_HAS(message_of([] {
               load_recipe("deploy", {"mixed.target_cost=9", "mixed.cost_table=a.csv",
                                      "mixed.target_bops=50%"});
             }),
             "one budget");
  EXPECT_HAS(message_of([] { load_recipe("deploy", {"mixed.target_cost=9"}); }), "names no file");
  EXPECT_HAS(message_of([] { load_recipe("deploy", {"mixed.cost_table=a.csv"}); }),
             "mixed.target_cost");
  EXPECT_HAS(message_of([] {
               load_recipe("deploy", {"quantize.mode=paper", "mixed.target_bops=50%"});
             }),
             "quantize.mode=deploy");
  EXPECT_HAS(message_of([] {
               load_recipe("deploy", {"mixed.min_bits=6", "mixed.max_bits=5"});
             }),
             "mixed.min_bits");
}

TEST(Values, BitsOfLayersSurviveTheResolvedForm) {
  const test::TempFolder folder;
  Recipe r = load_recipe(
      "deploy", {"quantize.weights.layer_bits=conv1=8,/a.b/Conv=2", "mixed.target_size=40%"});
  ASSERT_EQ(r.quantize.weights.layer_bits.size(), 2u);
  EXPECT_EQ(r.quantize.weights.layer_bits[1].layer, "/a.b/Conv");
  EXPECT_EQ(r.quantize.weights.layer_bits[1].bits, 2);
  EXPECT_TRUE(r.quantize.activations.layer_bits.empty());
  r.quantize.weights.layer_bits.push_back({"odd, \"name\"=x", 7});
  const Recipe again = load_recipe(folder.file("resolved.yaml", to_yaml(r)).string());
  EXPECT_EQ(to_yaml(again), to_yaml(r));
  EXPECT_EQ(again.quantize.weights.layer_bits.at(2).layer, "odd, \"name\"=x");
  EXPECT_TRUE(again.mixed.target_size.percent);
  EXPECT_HAS(message_of([] { load_recipe("deploy", {"quantize.weights.layer_bits=conv1=9"}); }),
             "9 is outside its range");
  EXPECT_HAS(message_of([] { load_recipe("deploy", {"quantize.weights.layer_bits=conv1"}); }),
             "layer=bits");
}

TEST(Values, StringsSurviveTheResolvedForm) {
  const test::TempFolder folder;
  const std::string odd = "a b: #c \"d\" \\e";
  const Recipe r = load_recipe("deploy", {"data.eval_data=" + odd});
  EXPECT_EQ(load_recipe(folder.file("resolved.yaml", to_yaml(r)).string()).data.eval_data, odd);
}

}  // namespace
}  // namespace zsq::values_test
