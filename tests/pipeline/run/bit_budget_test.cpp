// SPDX-License-Identifier: Apache-2.0
// A budget of costs on an accelerator, through the public API; mixed_test.cpp has the other two.
#include "pipeline/run/bit_budget.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <sstream>

#include "formats/atomic_file.h"
#include "pipeline/sensitivity.h"
#include "tests/pipeline/mixed.h"
#include "tests/support/error_message.h"

namespace zsq::bit_budget_test {
namespace {

namespace fs = std::filesystem;
using CostBudget = test::MixedNetwork;

std::string usage_error(const std::function<void()>& action) {
  return test::error_message(ErrorCode::usage, action);
}

// Costs that no number of bytes or of operations follows, and that may fall with more bits.
std::string cost_table(const SensitivityReport& layers) {
  std::string text = "layer,bits,cost\n";
  std::int64_t l = 0;
  for (const SensitivityRow& row : layers.layers) {
    ++l;
    for (std::int64_t bits = 2; bits <= 8; ++bits) {
      char cost[16];
      std::snprintf(cost, sizeof cost, "%.2f",
                    0.1 * static_cast<double>((l * 37 + bits * bits * 11) % 50 + 5 * bits));
      text += row.name + "," + std::to_string(bits) + "," + cost + "\n";
    }
  }
  return text;
}

// Against all choices of bits: none with less predicted divergence is within the limit.
TEST_F(CostBudget, ACostIsAHardLimit) {
  // The sensitivities that the choice is made with; 4 numbers of bits.
  const std::vector<std::string> few{"mixed.min_bits=3", "mixed.max_bits=6"};
  const SensitivityReport measured = sensitivity(model(), recipe(few));
  const std::string text = cost_table(measured);
  const fs::path table = folder_->file("costs.csv", text);
  std::map<std::pair<std::string, std::int64_t>, double> costs;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto bits = line.find(','), cost = line.rfind(',');
    if (cost > bits && line[bits + 1] != 'b')
      costs[{line.substr(0, bits), std::stoll(line.substr(bits + 1))}] =
          std::stod(line.substr(cost + 1));
  }
  auto settings = few;
  settings.insert(settings.end(), {"mixed.target_cost=80%", "mixed.cost_table=" + table.string()});
  const QuantizeReport report = run(settings, "cost");
  ASSERT_TRUE(report.mixed);
  EXPECT_EQ(report.mixed->budget_kind, "cost");
  EXPECT_EQ(report.mixed->cost_table, table.string());
  EXPECT_EQ(report.mixed->cost_table_sha256, formats::sha256_of_file(table));

  double used = 0, whole = 0, ends = 0;
  for (const LayerResult& layer : report.layers) {
    used += costs.at({layer.name, layer.weight_bits});
    const bool end = &layer == &report.layers.front() || &layer == &report.layers.back();
    whole += costs.at({layer.name, end ? 8 : 6});
    if (end) ends += costs.at({layer.name, 8});
  }
  EXPECT_NEAR(report.mixed->used, used, 1e-9);
  EXPECT_NEAR(report.mixed->budget, 0.8 * whole, 1e-9);
  EXPECT_LE(used, report.mixed->budget + 1e-9);

  double best = std::numeric_limits<double>::infinity();
  std::vector<const SensitivityRow*> open;
  for (const SensitivityRow& row : measured.layers)
    if (row.name != report.layers.front().name && row.name != report.layers.back().name)
      open.push_back(&row);
  ASSERT_LE(open.size(), 9u);
  const auto choices = static_cast<std::size_t>(std::pow(4, open.size()));
  for (std::size_t choice = 0; choice < choices; ++choice) {
    double cost = ends, divergence = 0;
    std::size_t digits = choice;
    for (const SensitivityRow* row : open) {
      const auto bits = static_cast<std::int64_t>(3 + digits % 4);
      digits /= 4;
      cost += costs.at({row->name, bits});
      divergence += row->weight_sensitivity.at(bits);
    }
    if (cost <= 0.8 * whole + 1e-9) best = std::min(best, divergence);
  }
  EXPECT_NEAR(report.mixed->predicted_divergence, best, 1e-6 * best);

  const std::string json = formats::read_text(*folder_ / "cost" / "report.json");
  EXPECT_NE(json.find(report.mixed->cost_table_sha256), std::string::npos);
  EXPECT_NE(formats::read_text(*folder_ / "cost" / "report.html").find(table.string()),
            std::string::npos);
  const Recipe again = load_recipe(*folder_ / "cost" / "resolved.yaml");
  EXPECT_EQ(again.mixed.target_cost.amount, 0);
  EXPECT_EQ(again.mixed.cost_table, "");
}

TEST_F(CostBudget, ACostThatCannotBeReachedNamesTheSmallest) {
  const std::vector<std::string> few{"mixed.min_bits=3", "mixed.max_bits=6"};
  const fs::path table = folder_->file("costs.csv", cost_table(sensitivity(model(), recipe(few))));
  const auto with = [&](const std::string& target) {
    auto settings = few;
    settings.insert(settings.end(),
                    {"mixed.target_cost=" + target, "mixed.cost_table=" + table.string()});
    return settings;
  };
  const std::string message = usage_error([&] { run(with("0.01"), "none"); });
  const std::string before = "the smallest is a cost of ";
  const auto smallest = message.find(before);
  ASSERT_NE(smallest, std::string::npos) << message;
  const std::string least =
      message.substr(smallest + before.size(),
                     message.find(' ', smallest + before.size()) - smallest - before.size());
  EXPECT_NEAR(run(with(least), "least").mixed->used, std::stod(least), 1e-9);
  usage_error([&] { run(with(std::to_string(std::stod(least) - 0.01)), "none"); });

  folder_->file("costs.csv", "layer,bits,cost\nno_layer,3,1\n");
  EXPECT_NE(
      test::error_message(ErrorCode::bad_input, [&] { run(with("9"), "none"); }).find("no_layer"),
      std::string::npos);
}

}  // namespace
}  // namespace zsq::bit_budget_test
