// SPDX-License-Identifier: Apache-2.0
// What the verdict tells of networks with several outputs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "pipeline/report/verdict.h"

namespace zsq::pipeline::verdict_outputs_test {
namespace {

TEST(VerdictOfOutputs, NamesTheOneThatAgreesLeast) {
  const auto at = [](double agreement) {
    SyntheticResult leaves{"dead_leaves", 64, 0.1, 0.99, 0.1},
        made{"optimised", 64, 0.1, agreement, 0.1};
    leaves.outputs = {{"seg", "map", 9, 0.05, 0.995}, {"age", "values", 1, 0.05, 0.991}};
    made.outputs = {{"seg", "map", 9, 0.05, 0.75}, {"age", "values", 1, 0.05, agreement}};
    return verdict_on({leaves, made}, "several", 10);
  };
  for (const double agreement : {0.5, 0.9}) {
    char words[64];
    std::snprintf(words, sizeof words, "; '%s' agrees least, by %.4f on optimised images",
                  agreement < 0.75 ? "age" : "seg", std::min(agreement, 0.75));
    EXPECT_NE(at(agreement).find(words), std::string::npos) << at(agreement);
  }
}

}  // namespace
}  // namespace zsq::pipeline::verdict_outputs_test
