// SPDX-License-Identifier: Apache-2.0
#include "eval/box_measures.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/eval/coco_cases.h"

namespace zsq::eval::box_measures_test {
namespace {

// By hand: two boxes of 40 x 40. The better detection is one of them, moved by a tenth (IoU 36 / 44
// = 0.818: right at 7 of 10 thresholds), the second is nowhere. Precision is 1 up to recall 0.5, at
// 51 of 101 recalls, and 0 from there on.
TEST(BoxMeasures, AreAveragesOverThresholdsAndRecalls) {
  const ImageBoxes image{{{{0, 0, 40, 40}, 1600, 0, false}, {{100, 0, 40, 40}, 1600, 0, false}},
                         {{{4, 0, 40, 40}, 0.9, 0}, {{300, 300, 40, 40}, 0.8, 0}}};
  const BoxMeasures found = measure_boxes({image}, 1);
  EXPECT_NEAR(found.ap50, 100 * 51.0 / 101, 1e-9);
  EXPECT_NEAR(found.ap75, 100 * 51.0 / 101, 1e-9);
  EXPECT_NEAR(found.ap, 70 * 51.0 / 101, 1e-9);
  EXPECT_NEAR(found.ar100, 70 * 0.5, 1e-9);
  EXPECT_NEAR(found.ap_medium, found.ap, 1e-9);
  EXPECT_TRUE(std::isnan(found.ap_small));
  EXPECT_TRUE(std::isnan(found.ap_large));
  EXPECT_EQ(found.boxes, 2);
  EXPECT_EQ(found.detections, 2);
}

// What overlaps a crowd is ignored; a second detection of a box that is taken is wrong.
TEST(BoxMeasures, IgnoreCrowdsAndCountABoxOnce) {
  ImageBoxes image{{{{0, 0, 40, 40}, 1600, 0, false}, {{100, 100, 200, 200}, 40000, 0, true}},
                   {{{110, 110, 40, 40}, 0.9, 0}, {{0, 0, 40, 40}, 0.8, 0}}};
  EXPECT_NEAR(measure_boxes({image}, 1).ap, 100, 1e-9);
  image.detections.insert(image.detections.begin(), {{0, 0, 40, 38}, 0.95, 0});
  EXPECT_NEAR(measure_boxes({image}, 1).ap50, 100, 1e-9);
  EXPECT_EQ(measure_boxes({image}, 1).boxes, 1);
  image.truth[1].crowd = false;
  EXPECT_LT(measure_boxes({image}, 1).ap50, 100);
}

TEST(BoxMeasures, OfNothingAreNone) {
  EXPECT_TRUE(std::isnan(measure_boxes({{{}, {{{0, 0, 1, 1}, 1, 0}}}}, 1).ap));
  EXPECT_EQ(measure_boxes({{{{{0, 0, 9, 9}, 81, 0, false}}, {}}}, 1).ap, 0);
}

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed) {}

  std::int64_t below(std::int64_t n) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::int64_t>(state_ >> 33) % n;
  }
  double eighths(std::int64_t first, std::int64_t n) {
    return static_cast<double>(first + below(n)) / 8;
  }
  Box box() {
    const double left = eighths(0, 4000), top = eighths(0, 4000);
    constexpr std::int64_t kSides[] = {200, 700, 3000};
    const std::int64_t sides = kSides[below(3)];
    const double width = eighths(1, sides), height = eighths(1, sides);
    return {left, top, width, height};
  }
  Box near(Box box) {
    box.left += eighths(-32, 65);
    box.top += eighths(-32, 65);
    box.width = box.width * static_cast<double>(12 + below(9)) / 16;
    box.height = box.height * static_cast<double>(12 + below(9)) / 16;
    return box;
  }
  double score() { return static_cast<double>(below(50)) / 50; }

 private:
  std::uint64_t state_;
};

ImageBoxes draw_image(Draw& draw, bool first, std::int64_t categories) {
  ImageBoxes image;
  for (auto left = draw.below(8); left > 0; --left) {
    TrueBox truth;
    truth.category = draw.below(categories);
    truth.box = draw.box();
    truth.area = truth.box.width * truth.box.height / (draw.below(4) == 0 ? 2 : 1);
    truth.crowd = draw.below(8) == 0;
    image.truth.push_back(truth);
    for (auto near = draw.below(4); near > 0; --near) {
      const Box box = draw.near(truth.box);
      image.detections.push_back({box, draw.score(), truth.category});
    }
  }
  for (auto left = first ? 130 : draw.below(6); left > 0; --left) {
    const std::int64_t category = first ? 0 : draw.below(categories);
    const Box box = draw.box();
    image.detections.push_back({box, draw.score(), category});
  }
  return image;
}

TEST(BoxMeasures, AreThoseOfPycocotools) {
  for (const CocoCase& known : kCocoCases) {
    SCOPED_TRACE(known.seed);
    Draw draw(known.seed);
    std::vector<ImageBoxes> images;
    for (std::int64_t i = 0; i < known.images; ++i)
      images.push_back(draw_image(draw, i == 0, known.categories));
    const BoxMeasures m = measure_boxes(images, known.categories);
    const double found[] = {m.ap, m.ap50, m.ap75, m.ar100, m.ap_small, m.ap_medium, m.ap_large};
    for (std::size_t i = 0; i < known.measures.size(); ++i)
      EXPECT_NEAR(found[i], known.measures[i], 1e-11) << i;
  }
}

}  // namespace
}  // namespace zsq::eval::box_measures_test
