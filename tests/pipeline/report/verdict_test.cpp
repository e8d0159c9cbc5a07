// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report/verdict.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "pipeline/report/experience.h"
#include "pipeline/report/json.h"

namespace zsq::pipeline {
namespace {

std::string verdict_at(double divergence) {
  return verdict_on(
      {{"dead_leaves", 64, 2 * divergence, 0.9}, {"optimised", 64, divergence / 2, 0.95}});
}

TEST(Verdict, GetsWorseWithTheDivergence) {
  EXPECT_EQ(verdict_on({}), "");
  EXPECT_TRUE(verdict_at(0.01).starts_with("as good as"));
  EXPECT_TRUE(verdict_at(0.1).starts_with("nearly as good as"));
  EXPECT_TRUE(verdict_at(0.2).starts_with("a little worse than"));
  EXPECT_TRUE(verdict_at(0.3).starts_with("worse than"));
  EXPECT_TRUE(verdict_at(0.7).starts_with("much worse than"));
  EXPECT_TRUE(verdict_at(1.5).starts_with("much worse than the float network, if not unusable"));
  EXPECT_TRUE(verdict_at(5).starts_with("unusable"));
}

// Each network's losses within a band, sorted.
std::map<std::string, std::vector<double>> measured(double from, double below) {
  std::ifstream file(std::string(ZSQ_SOURCE_DIR) + "/docs/verdict.json");
  std::map<std::string, std::vector<double>> losses;
  for (const Json& run : Json::parse(file))
    if (!run.contains("kind") && run.at("divergence") >= from && run.at("divergence") < below)
      losses[run.at("network")].push_back(run.at("loss"));
  for (auto& [network, lost] : losses) std::sort(lost.begin(), lost.end());
  return losses;
}

// Runs of networks of few outputs: what is called good lost a point at most, and each network has a
// run that is.
TEST(Verdict, OfFewOutputsCallsGoodWhatLostLittle) {
  std::ifstream file(std::string(ZSQ_SOURCE_DIR) + "/docs/verdict.json");
  std::map<std::string, int> good;
  for (const Json& run : Json::parse(file)) {
    if (!run.contains("kind") || !experience_with(run.at("kind"), run.at("outputs"))) continue;
    std::vector<SyntheticResult> seen;
    for (const auto& [kind, divergence] : run.at("kinds").items())
      seen.push_back(
          {kind, 64, divergence, run.at("agreements").at(kind), run.at("shares").at(kind)});
    int& count = good[run.at("network")];
    if (mood_of(verdict_on(seen, run.at("kind"), run.at("outputs"))) != "good") continue;
    ++count;
    EXPECT_LE(run.at("loss").get<double>(), 1) << run.dump();
  }
  EXPECT_GE(good.size(), 4U);
  for (const auto& [network, count] : good) EXPECT_GE(count, 1) << network;
}

TEST(Verdict, OfRealImagesIsWhatTheyMeasured) {
  EXPECT_EQ(verdict_on(Accuracy{91.64, 99, 1017}, Accuracy{85.45, 98, 1017}),
            "loses 6.19 points of top-1: 85.45 % instead of 91.64 % on 1017 real images");
  EXPECT_EQ(verdict_on(Accuracy{87, 98, 300}, Accuracy{87.67, 98, 300}),
            "as accurate as the float network: 87.67 % instead of 87.00 % on 300 real images");
}

TEST(Verdict, HasAMood) {
  EXPECT_EQ(mood_of(verdict_at(0.1)), "good");
  EXPECT_EQ(mood_of(verdict_at(0.2)), "fair");
  EXPECT_EQ(mood_of(verdict_at(0.3)), "fair");
  EXPECT_EQ(mood_of(verdict_at(0.7)), "bad");
  EXPECT_EQ(mood_of("unlike anything that it says"), "bad");
}

// A low agreement on one kind of images is enough, however small the divergence is.
TEST(Verdict, NeverCallsGoodWhatDecidesOtherwise) {
  const std::string verdict =
      verdict_on({{"dead_leaves", 64, 1e-4, 0.828}, {"optimised", 64, 1e-5, 1}}, "logits", 10);
  EXPECT_EQ(mood_of(verdict), "bad") << verdict;
  EXPECT_NE(verdict.find("82.8 % with the teacher"), std::string::npos) << verdict;
  EXPECT_NE(verdict.find("dead-leaves images"), std::string::npos) << verdict;
  EXPECT_EQ(mood_of(verdict_on({{"dead_leaves", 64, 1e-4, 1}, {"optimised", 64, 1e-5, NAN}})),
            "bad");
  EXPECT_EQ(mood_of(verdict_on({{"dead_leaves", 64, NAN, 1}, {"optimised", 64, 1e-5, 1}})), "bad");
}

TEST(Verdict, SaysWhereThereIsNoExperience) {
  const std::vector<SyntheticResult> fine{{"dead_leaves", 64, 1e-4, 1}, {"optimised", 64, 1e-5, 1}};
  const std::string verdict = verdict_on(fine, "logits", 21841);
  EXPECT_TRUE(verdict.starts_with("no experience with networks of 21841 classes")) << verdict;
  EXPECT_NE(verdict.find("100.0 % with the teacher, KL 0.0000"), std::string::npos) << verdict;
  EXPECT_EQ(mood_of(verdict), "fair");
}

// Nothing that the network says the same of tells students apart.
TEST(Verdict, SaysNothingWhereTheNetworkNamesOneClass) {
  const auto at = [](double leaves, double optimised, const char* kind, std::int64_t outputs) {
    return mood_of(
        verdict_on({{"dead_leaves", 64, 1e-4, 1, leaves}, {"optimised", 64, 1e-5, 1, optimised}},
                   kind, outputs));
  };
  EXPECT_EQ(at(0.9, 0.1, "logits", 10), "good");
  EXPECT_EQ(at(0.97, 0.1, "logits", 10), "fair");
  EXPECT_EQ(at(0.9, 0.7, "logits", 10), "fair");
  EXPECT_EQ(at(0, 1, "values", 4), "fair");
  EXPECT_TRUE(verdict_on({{"dead_leaves", 64, 1e-4, 1, 0.97}}, "logits", 10)
                  .starts_with("nothing can be said"));
}

// What it says is what the stored runs of the networks lost.
TEST(Verdict, SaysWhatTheMeasuredRunsLost) {
  const double bounds[] = {0, 0.06, 0.12, 0.25, 0.5, 1, 2, 1e9};
  for (int band = 0; band < 7; ++band) {
    double least = 100, most = 0, largest = 0;
    const auto losses = measured(bounds[band], bounds[band + 1]);
    EXPECT_EQ(losses.size(), band < 6 ? 3U : 2U);
    for (const auto& [network, lost] : losses) {
      const double median = (lost[lost.size() / 2] + lost[(lost.size() - 1) / 2]) / 2;
      least = std::min(least, std::max(median, 0.0));
      most = std::max(most, median);
      largest = std::max(largest, lost.back());
    }
    char said[120];
    std::snprintf(said, sizeof said,
                  "lost %.1f to %.1f points of top-1 (medians of %s networks; at most %.1f)", least,
                  most, losses.size() == 3 ? "three" : "two", largest);
    EXPECT_NE(verdict_at(bounds[band] + 0.01).find(said), std::string::npos)
        << said << " | " << verdict_at(bounds[band] + 0.01);
  }
}

}  // namespace
}  // namespace zsq::pipeline
