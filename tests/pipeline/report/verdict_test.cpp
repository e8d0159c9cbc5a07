// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report/verdict.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "pipeline/report/json.h"

namespace zsq::pipeline {
namespace {

std::string verdict_at(double divergence, std::int64_t classes = 1000) {
  return verdict_on(
      {{"dead_leaves", 64, 2 * divergence, 0}, {"optimised", 64, divergence / 2, 0.5}}, classes);
}

TEST(Verdict, GetsWorseWithTheDivergence) {
  EXPECT_EQ(verdict_on({}, 10), "");
  EXPECT_TRUE(verdict_at(0.01).starts_with("as good as"));
  EXPECT_TRUE(verdict_at(0.7).starts_with("worse than"));
  EXPECT_TRUE(verdict_at(5).starts_with("unusable"));
  EXPECT_TRUE(verdict_at(0.7, 10).starts_with("a little worse"));
}

// What it says is what the stored runs of each network lost.
TEST(Verdict, SaysWhatTheMeasuredRunsLost) {
  std::ifstream file(std::string(ZSQ_SOURCE_DIR) + "/docs/verdict.json");
  std::map<std::int64_t, std::vector<double>> losses;  // by classes
  for (const Json& run : Json::parse(file))
    if (run.at("divergence") >= 0.25 && run.at("divergence") < 0.5)
      losses[run.at("network").get<std::string>().starts_with("ResNet") ? 10 : 1000].push_back(
          run.at("loss"));
  ASSERT_EQ(losses.size(), 2U);
  for (auto& [classes, lost] : losses) {
    std::sort(lost.begin(), lost.end());
    const double median = (lost[lost.size() / 2] + lost[(lost.size() - 1) / 2]) / 2;
    char said[80];
    std::snprintf(said, sizeof said, "lost %.1f points of top-1 (median; at most %.1f)", median,
                  lost.back());
    EXPECT_NE(verdict_at(0.3, classes).find(said), std::string::npos)
        << said << " | " << verdict_at(0.3, classes);
  }
}

}  // namespace
}  // namespace zsq::pipeline
