// SPDX-License-Identifier: Apache-2.0
#include "eval/box_counts.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

namespace zsq::eval::box_counts_test {
namespace {

using Kept = std::vector<std::size_t>;

// IoU of the first two 60 / 140 = 0.43, of the first and the third 80 / 120 = 0.67.
TEST(Suppress, KeepsTheBestOfEachPlaceAndClass) {
  const std::vector<Detection> boxes{{{4, 0, 10, 10}, 0.5, 0},
                                     {{0, 0, 10, 10}, 0.9, 0},
                                     {{2, 0, 10, 10}, 0.8, 0},
                                     {{0, 0, 10, 10}, 0.7, 1},
                                     {{0, 0, 10, 10}, 0.7, 0}};
  EXPECT_EQ(suppress(boxes, 0.6, 10), (Kept{1, 3, 0}));
  EXPECT_EQ(suppress(boxes, 0.4, 10), (Kept{1, 3}));
  EXPECT_EQ(suppress(boxes, 0.7, 10), (Kept{1, 2, 3, 0}));
  EXPECT_EQ(suppress(boxes, 1, 10), (Kept{1, 2, 3, 4, 0}));
  EXPECT_EQ(suppress(boxes, 0.6, 2), (Kept{1, 3}));
  EXPECT_TRUE(suppress({}, 0.6, 2).empty());
}

// A network of decoded outputs: boxes [2, 4], scores [2], labels [2], for images of 10 x 20.
class BoxCountsTest : public testing::Test {
 protected:
  BoxCountsTest() {
    graph_.input_shape = {3, 10, 20};
    graph_.signature.kind = models::OutputRow({{.name = "boxes", .shape = {2, 4}},
                                               {.name = "scores", .shape = {2}},
                                               {.name = "labels", .shape = {2}}});
    file_.images = {{1, "a", {}, {{{20, 10, 40, 20}, 800, 1, false}}}};
  }

  // `boxes` of the network on an image of 80 x 40 (width x height) that is stretched.
  BoxMeasures measured(const std::vector<float>& boxes) {
    BoxCounts counts(graph_, 12, file_, options_);
    const at::Tensor rest = at::tensor({0.9F, 0.5F, 1.F, 0.F});
    counts.add(at::cat({at::tensor(boxes), rest}).unsqueeze(0),
               at::tensor({0.0, 0.0, 0.0, 80.0, 40.0, 80.0, 40.0}).unsqueeze(0));
    return counts.result();
  }

  models::Graph graph_;
  CocoFile file_{"boxes.json", {}, {{1, "cat"}, {2, "dog"}}};
  DataOptions options_;
};

TEST_F(BoxCountsTest, MapsBoxesIntoTheImage) {
  EXPECT_NEAR(measured({5, 2.5, 15, 7.5, 0, 0, 3, 3}).ap, 100, 1e-9);
  EXPECT_NEAR(measured({0.25, 0.25, 0.75, 0.75, 0, 0, 0.1, 0.1}).ap, 100, 1e-9);
  options_.box_units = BoxUnits::pixels;
  EXPECT_EQ(measured({0.25, 0.25, 0.75, 0.75, 0, 0, 0.1, 0.1}).ap, 0);
}

TEST_F(BoxCountsTest, ClipsBoxesToTheImage) {
  file_.images[0].boxes[0].box = {20, 10, 60, 30};
  EXPECT_NEAR(measured({5, 2.5, 30, 30, 0, 0, 3, 3}).ap, 100, 1e-9);
}

TEST_F(BoxCountsTest, LeavesOutLowScoresAndBoxesThatAreNone) {
  EXPECT_EQ(measured({5, 2.5, 15, 7.5, 0, 0, 3, 3}).detections, 2);
  EXPECT_EQ(measured({5, 2.5, 15, 7.5, 3, 0, 0, 3}).detections, 1);
  EXPECT_EQ(measured({5, 2.5, 15, 7.5, 3, 0, std::nanf(""), 3}).detections, 1);
  options_.box_score = 0.5;
  EXPECT_EQ(measured({5, 2.5, 15, 7.5, 0, 0, 3, 3}).detections, 1);
  options_.box_score = 0;
  options_.max_boxes = 1;
  EXPECT_EQ(measured({5, 2.5, 15, 7.5, 0, 0, 3, 3}).detections, 1);
}

}  // namespace
}  // namespace zsq::eval::box_counts_test
