// SPDX-License-Identifier: Apache-2.0
// Bits under a budget, through the public API: the budget is kept, spent where it helps, and the
// resolved recipe repeats the choice.
#include "tests/pipeline/mixed.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "formats/atomic_file.h"
#include "pipeline/quantize.h"
#include "pipeline/sensitivity.h"
#include "tests/support/error_message.h"

namespace zsq::mixed_test {
namespace {

namespace fs = std::filesystem;
using Mixed = test::MixedNetwork;

std::string usage_error(const std::function<void()>& action) {
  return test::error_message(ErrorCode::usage, action);
}

TEST_F(Mixed, ASizeIsKeptAndSpent) {
  const std::string w4 = "quantize.weights.num_bits=4";
  const QuantizeReport uniform = run({w4}, "uniform");
  EXPECT_EQ(uniform.scheme, "W4A8");
  EXPECT_FALSE(uniform.mixed);
  const std::string size = std::to_string(uniform.quantized_bytes);
  const QuantizeReport mixed = run({w4, "mixed.target_size=" + size}, "mixed");
  EXPECT_EQ(mixed.scheme, "mixed");
  ASSERT_TRUE(mixed.mixed);
  EXPECT_EQ(mixed.mixed->budget, uniform.quantized_bytes);
  EXPECT_EQ(mixed.mixed->used, mixed.quantized_bytes);  // what was planned is what is written
  EXPECT_LE(mixed.quantized_bytes, uniform.quantized_bytes);
  EXPECT_GE(mixed.quantized_bytes, 0.97 * uniform.quantized_bytes);
  const auto chosen = bits(mixed), given = bits(uniform);
  std::set<std::int64_t> widths;
  for (const auto& [layer, pair] : chosen) {
    widths.insert(pair.first);
    EXPECT_EQ(pair.second, given.at(layer).second) << layer;  // activations keep theirs
  }
  EXPECT_GE(widths.size(), 3u);
  EXPECT_EQ(mixed.layers.front().weight_bits, 8);
  EXPECT_EQ(mixed.layers.back().weight_bits, 8);
  std::printf("W4A8: uniform %.1f %%, mixed of the same size %.1f %%\n", uniform.student->top1,
              mixed.student->top1);
  EXPECT_GE(mixed.student->top1, uniform.student->top1 - 1);

  // The same bits, and the same bytes, from the resolved recipe; the images come from the cache.
  QuantizeOptions options;
  options.recipe = load_recipe(*folder_ / "mixed" / "resolved.yaml");
  EXPECT_EQ(options.recipe.mixed.target_size.amount, 0);
  options.recipe.name = "instant";  // it stands in the file
  const QuantizeReport again = quantize(model(), options, *folder_ / "again");
  EXPECT_EQ(bits(again), chosen);
  EXPECT_EQ(formats::read_file(*folder_ / "again" / "model.onnx"),
            formats::read_file(*folder_ / "mixed" / "model.onnx"));
}

// Layers of 3 and 4 bits have tables, whose number depends on the weights; others zero points.
TEST_F(Mixed, ASizeCountsLevelTables) {
  const QuantizeReport report =
      run({"mixed.target_size=16%", "mixed.max_bits=6", "quantize.weights.level_tables=int,normal"},
          "tables");
  ASSERT_TRUE(report.mixed);
  EXPECT_EQ(report.mixed->used, report.quantized_bytes);
  EXPECT_LE(report.quantized_bytes, report.mixed->budget);
  std::set<std::int64_t> widths;
  for (const LayerResult& layer : report.layers) widths.insert(layer.weight_bits);
  EXPECT_TRUE(widths.contains(4) || widths.contains(3));
  EXPECT_TRUE(widths.contains(5) || widths.contains(6));
}

TEST_F(Mixed, BitOperationsAreKept) {
  const QuantizeReport report = run({"mixed.target_bops=25%"}, "bops");
  ASSERT_TRUE(report.mixed);
  EXPECT_LE(report.mixed->used, report.mixed->budget);
  EXPECT_GE(report.mixed->used, 0.97 * report.mixed->budget);
  const SensitivityReport layers = sensitivity(model(), recipe({}));
  std::int64_t used = 0, whole = 0;
  const auto chosen = bits(report);
  for (const SensitivityRow& row : layers.layers) {
    const auto [weight_bits, input_bits] = chosen.at(row.name);
    used += row.macs * weight_bits * input_bits;
    whole += row.macs * 64;
  }
  EXPECT_EQ(report.mixed->used, used);
  EXPECT_EQ(report.mixed->budget, whole / 4);
}

TEST_F(Mixed, WhatCannotBeReachedNamesTheSmallest) {
  const std::string message = usage_error([] { run({"mixed.target_size=1%"}, "none"); });
  const auto smallest = message.find("the smallest is ");
  ASSERT_NE(smallest, std::string::npos) << message;
  // The size it names can be reached, and a byte less cannot.
  const double bytes = 1000 * std::stod(message.substr(smallest + 16));
  const auto size = [](double n) {
    return "mixed.target_size=" + std::to_string(static_cast<std::int64_t>(n + 0.5));
  };
  EXPECT_EQ(run({size(bytes)}, "least").quantized_bytes, std::llround(bytes));
  usage_error([&] { run({size(bytes - 1)}, "none"); });
}

TEST_F(Mixed, SensitivityRanksLayers) {
  const SensitivityReport report =
      sensitivity(model(), recipe({"quantize.weights.num_bits=3", "mixed.max_bits=6"}));
  ASSERT_GE(report.layers.size(), 5u);
  double before = std::numeric_limits<double>::infinity();
  for (const SensitivityRow& row : report.layers) {
    EXPECT_EQ(row.weight_sensitivity.size(), 7u) << row.name;  // 2 to 6, and up to the recipe's A8
    const double sensitivity = row.weight_sensitivity.at(3) +
                               (row.input_sensitivity.empty() ? 0 : row.input_sensitivity.at(8));
    EXPECT_LE(sensitivity, before);
    before = sensitivity;
    EXPECT_GT(row.weight_sensitivity.at(2), row.weight_sensitivity.at(8)) << row.name;
  }
}

// A cache that cannot be used costs time and a warning, no result.
TEST_F(Mixed, ImagesAreKeptWhereTheyCanBe) {
  struct Log : Observer {
    void on_message(LogLevel level, const std::string& message) override {
      (level == LogLevel::warning ? warnings : infos) += message + "\n";
    }
    std::string warnings, infos;
  };
  const auto measured = [&](Log& log) {
    return sensitivity(model(), recipe({"mixed.images=4", "mixed.min_bits=8"}), &log)
        .layers.front()
        .weight_sensitivity;
  };
  Log first, second, damaged, unwritable;
  const auto expected = measured(first);
  EXPECT_NE(first.infos.find("optimising 4 images"), std::string::npos);
  EXPECT_EQ(measured(second), expected);
  EXPECT_EQ(second.infos.find("optimising"), std::string::npos);
  for (const auto& entry : fs::directory_iterator(*folder_ / "cache"))
    folder_->file("cache/" + entry.path().filename().string(), "x");
  EXPECT_EQ(measured(damaged), expected);
  EXPECT_NE(damaged.warnings.find("generated again"), std::string::npos);
  setenv("ZSQ_CACHE", folder_->file("no_folder", "x").c_str(), 1);
  EXPECT_EQ(measured(unwritable), expected);
  EXPECT_NE(unwritable.warnings.find("not cached"), std::string::npos);
  setenv("ZSQ_CACHE", (*folder_ / "cache").c_str(), 1);
}

}  // namespace
}  // namespace zsq::mixed_test
