// SPDX-License-Identifier: Apache-2.0
// Every analysis through the program: a table, a picture and figures that agree with the table.
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace zsq {
namespace {

class Analyze : public Cli {
 protected:
  nlohmann::json result(const std::string& name, const std::string& more = "",
                        int images = 24) const {
    const Outcome outcome = run("analyze " + name + " " + tiny().model.string() +
                                " --preset cifar10 --iterations 12 --set finetune.batch_size=16"
                                " --set quantize.activations.calibration_images=32 --threads 1"
                                " --format json --looks 3 -n " +
                                std::to_string(images) + " -o " + path("out") + " " + more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out);
  }
  std::vector<std::vector<std::string>> table(const std::string& name) const {
    std::istringstream text(text_of(folder_ / "out" / (name + ".csv")));
    std::vector<std::vector<std::string>> rows;
    for (std::string line; std::getline(text, line);) {
      rows.emplace_back();
      std::istringstream cells(line);
      bool quoted = false;
      std::string cell;
      for (char c; cells.get(c);) {
        if (c == '"')
          quoted = !quoted;
        else if (c == ',' && !quoted)
          rows.back().push_back(std::exchange(cell, ""));
        else
          cell += c;
      }
      rows.back().push_back(cell);
    }
    return rows;
  }
  std::string picture(const std::string& name) const {
    return text_of(folder_ / "out" / (name + ".svg"));
  }
  static std::string real() { return "--data " + tiny().images.string(); }
};

TEST_F(Analyze, GradientCosine) {
  const auto report = result("gradient_cosine", real());
  EXPECT_EQ(report["scheme"], "W4A4");
  std::map<std::string, std::pair<double, int>> sums;  // of all layers, by kind of images
  for (const auto& row : table("gradient_cosine")) {
    if (row[2] != "all") continue;
    const double cosine = std::stod(row[3]);
    EXPECT_LE(std::abs(cosine), 1);
    sums[row[0]].first += cosine;
    sums[row[0]].second += 1;
  }
  ASSERT_EQ(sums.size(), 2u);
  for (const auto& [kind, sum] : sums) {
    EXPECT_GE(sum.second, 3) << kind;
    EXPECT_NEAR(report["figures"]["mean cosine, " + kind].get<double>(), sum.first / sum.second,
                1e-4);
  }
  EXPECT_NE(picture("gradient_cosine").find("</svg>"), std::string::npos);
}

TEST_F(Analyze, CrossingsAreMoreWithInundation) {
  const auto report = result("crossings");
  std::map<std::string, std::pair<double, double>> sums;  // changed, codes
  for (const auto& row : table("crossings"))
    if (row[0] != "training") {
      sums[row[0]].first += std::stod(row[3]) * std::stod(row[4]);
      sums[row[0]].second += std::stod(row[3]);
    }
  ASSERT_EQ(sums.size(), 2u);
  std::vector<double> shares;
  for (const auto& [name, sum] : sums) {
    shares.push_back(100 * sum.first / sum.second);
    EXPECT_NEAR(report["figures"]["crossings per step, %: " + name].get<double>(), shares.back(),
                1e-9);
  }
  EXPECT_LT(shares[0], 0.3 * shares[1]);
  EXPECT_GT(shares[1], 0.02);  // %, the mean of 0.1 and what the milestones leave of it
}

TEST_F(Analyze, ThresholdDistance) {
  result("threshold_distance");
  std::map<std::string, double> shares;  // of each layer at each moment: at most all of its weights
  for (const auto& row : table("threshold_distance"))
    if (row[0] != "moment") shares[row[0] + row[1]] += std::stod(row[4]);
  EXPECT_GE(shares.size(), 4u);
  for (const auto& [name, share] : shares) {
    EXPECT_LE(share, 1 + 1e-6) << name;
    EXPECT_GT(share, 0) << name;
  }
}

TEST_F(Analyze, HessianTraceIsTheSumOfItsLayers) {
  const auto report = result("hessian_trace", "", 8);
  std::map<std::string, double> all, layers;
  for (const auto& row : table("hessian_trace")) {
    if (row[0] == "loss") continue;
    (row[2] == "all" ? all : layers)[row[0] + ", quantizers " + row[1]] += std::stod(row[3]);
  }
  ASSERT_EQ(all.size(), 6u);
  for (const auto& [name, trace] : all) {
    EXPECT_NEAR(layers[name], trace, 1e-3 * std::abs(trace) + 1e-6) << name;
    EXPECT_NEAR(report["figures"]["trace, " + name].get<double>(), trace, 1e-6 * std::abs(trace));
  }
}

TEST_F(Analyze, LossSurface) {
  const auto report = result("loss_surface", "", 8);
  int centres = 0;
  for (const auto& row : table("loss_surface")) {
    if (row[0] == "loss" || std::stod(row[1]) != 0 || std::stod(row[2]) != 0) continue;
    ++centres;
    const double loss = report["figures"]["loss at the weights, " + row[0]];
    EXPECT_NEAR(loss, std::stod(row[3]), 1e-8 * loss);
  }
  EXPECT_EQ(centres, 3);
}

TEST_F(Analyze, FeatureMap) {
  const auto report = result("feature_map", real());
  std::map<std::string, int> images, between;
  for (const auto& row : table("feature_map")) {
    if (row[0] == "images") continue;
    ++images[row[0]];
    between[row[0]] += row[1] == "between";
  }
  EXPECT_EQ(images["real"], 24);
  EXPECT_EQ(images["single classes"], 24);
  EXPECT_EQ(images["with boundary samples"], 24);
  EXPECT_EQ(between["single classes"], 0);
  EXPECT_GT(between["with boundary samples"], 0);
  EXPECT_TRUE(report["figures"].contains("real: pairs of classes covered, of 28"));  // 8 classes
}

TEST_F(Analyze, NamesAreListedAndWrongOnesRefused) {
  const Outcome names = run("analyze");
  for (const char* name : {"gradient_cosine", "crossings", "threshold_distance", "hessian_trace",
                           "loss_surface", "feature_map"})
    EXPECT_NE(names.out.find(name), std::string::npos) << names.out;
  const std::string model = tiny().model.string(), out = " -o " + path("out");
  expect_error(2, "analyze crossing " + model + out, {"did you mean 'crossings'"});
  expect_error(2, "analyze crossings" + out, {"MODEL is missing"});
  expect_error(2, "analyze crossings " + model, {"--output_path"});
  expect_error(2, "analyze crossings " + model + out + " --iterations 0", {"finetune.iterations"});
}

}  // namespace
}  // namespace zsq
