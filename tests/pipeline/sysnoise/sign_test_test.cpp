// SPDX-License-Identifier: Apache-2.0
#include "pipeline/sysnoise/sign_test.h"

#include <gtest/gtest.h>

namespace zsq::pipeline {
namespace {

// By hand from Pascal's triangle: 2 (1 + 5) / 32, 2 (1 + 10 + 45) / 1024, 2 / 64.
TEST(SignTest, OfTheBinomialDistribution) {
  EXPECT_EQ(sign_test(0, 0), 1);
  EXPECT_EQ(sign_test(3, 3), 1);
  EXPECT_NEAR(sign_test(1, 4), 12.0 / 32, 1e-12);
  EXPECT_NEAR(sign_test(8, 2), 112.0 / 1024, 1e-12);
  EXPECT_NEAR(sign_test(0, 6), 2.0 / 64, 1e-12);
}

// Far above what a factorial fits into: the normal distribution says 0.0455 at two deviations.
TEST(SignTest, OfThousandsOfImages) { EXPECT_NEAR(sign_test(4900, 5100), 0.0466, 1e-3); }

}  // namespace
}  // namespace zsq::pipeline
