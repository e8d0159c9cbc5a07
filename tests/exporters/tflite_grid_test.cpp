// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "exporters/tflite/grid.h"
#include "exporters/tflite/layout.h"

namespace zsq::exporters::tflite {
namespace {

constexpr bool kReached = true;

TEST(TfliteGrid, EightBitsAreShiftedBy128) {
  const Grid grid = choose_grid(0.5F, 10, {0, 255, kReached, kReached});
  EXPECT_EQ(grid.shift, -128);
  EXPECT_EQ(grid.zero_point, -118);
  EXPECT_FALSE(grid.limit_below || grid.limit_above) << "int8 does it";
}

// int8 cuts off above, and a fused ReLU below.
TEST(TfliteGrid, FourBitsOfAReluNeedNoOperator) {
  const Grid grid = choose_grid(0.5F, 0, {0, 15, kReached, kReached});
  EXPECT_EQ(grid.shift, 112);
  EXPECT_EQ(grid.zero_point, 112);
  EXPECT_EQ(grid.highest, 127);
  EXPECT_FALSE(grid.limit_above);
  EXPECT_TRUE(grid.relu_limits_below());
  EXPECT_EQ(fused(grid), Activation::RELU);
}

TEST(TfliteGrid, OtherFourBitsNeedOneOperator) {
  const Grid grid = choose_grid(0.5F, 6, {0, 15, kReached, kReached});
  EXPECT_EQ(grid.limit_below + grid.limit_above, 1);
  EXPECT_EQ(fused(grid), Activation::NONE) << "a ReLU would cut off codes 0 to 5";
}

TEST(TfliteGrid, AFoldedRelu6EndsAt127) {
  const Grid grid = choose_grid(0.05F, 0, {0, 120, kReached, kReached});
  EXPECT_EQ(grid.highest, 127);
  EXPECT_EQ(grid.shift, 7);
  EXPECT_TRUE(grid.relu_limits_below());
  EXPECT_FALSE(grid.limit_above);
}

TEST(TfliteGrid, SymmetricCodesStayAsTheyAre) {
  EXPECT_EQ(choose_grid(1, 0, {-128, 127, kReached, kReached}).shift, 0);
}

TEST(TfliteGrid, NamesWhatDoesNotFit) {
  EXPECT_EQ(why_not_int8(choose_grid(1, 0, {0, 255, kReached, kReached})), "");
  EXPECT_NE(why_not_int8(choose_grid(1, 0, {0, 256, kReached, kReached})), "");
  EXPECT_NE(why_not_int8(choose_grid(1, 300, {0, 255, kReached, kReached})), "");
  EXPECT_EQ(why_not_int8(shifted_grid(1, 0, {0, 255, false, false}, 112)), "")
      << "no value reaches what is beyond int8";
}

TEST(TfliteLayout, PutsChannelsLast) {
  EXPECT_EQ(stored_shape({1, 3, 5, 7}), (Sizes{1, 5, 7, 3}));
  EXPECT_EQ(stored_shape({1, 2, 4, 5, 7}), (Sizes{1, 5, 7, 2, 4}));
  EXPECT_EQ(stored_shape({1, 9}), (Sizes{1, 9}));
  EXPECT_EQ(stored_axis(1, 4), 3);
  EXPECT_EQ(stored_axis(-1, 4), 2);
  EXPECT_EQ(stored_axis(2, 5), 4);
}

}  // namespace
}  // namespace zsq::exporters::tflite
