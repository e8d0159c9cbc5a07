// SPDX-License-Identifier: Apache-2.0
#include "pipeline/verdict.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>

#include "pipeline/json.h"

namespace zsq::pipeline {
namespace {

std::string verdict_at(double divergence) {
  return verdict_on({{"dead_leaves", 64, 9, 0}, {"optimised", 64, divergence, 0.5}});
}

TEST(Verdict, GetsWorseWithTheDivergence) {
  EXPECT_EQ(verdict_on({}), "");
  EXPECT_TRUE(verdict_at(0.01).starts_with("as good as"));
  EXPECT_TRUE(verdict_at(0.7).starts_with("clearly worse"));
  EXPECT_TRUE(verdict_at(5).starts_with("unusable"));
}

// What it says is what the stored runs lost.
TEST(Verdict, SaysWhatTheMeasuredRunsLost) {
  std::ifstream file(std::string(ZSQ_SOURCE_DIR) + "/docs/selection.json");
  const Json runs = Json::parse(file);
  double largest = 0;
  for (const Json& run : runs)
    if (run.at("divergence") >= 0.25 && run.at("divergence") < 0.5)
      largest = std::max(largest, run.at("loss").get<double>());
  EXPECT_NEAR(largest, 7.0, 0.05);
  EXPECT_NE(verdict_at(0.3).find("at most 7.0"), std::string::npos) << verdict_at(0.3);
}

}  // namespace
}  // namespace zsq::pipeline
