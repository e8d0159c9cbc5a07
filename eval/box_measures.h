// SPDX-License-Identifier: Apache-2.0
// What is measured of detectors: COCO's average precision of boxes (cocodataset.org, "Detection
// evaluation"), number for number as pycocotools 2.0 computes it.
#pragma once
#include <cstdint>
#include <limits>
#include <vector>

namespace zsq::eval {

// Per cent; NaN where no box of the data counts (pycocotools: -1).
// A detection is right at a threshold t if it overlaps a box of its category, which no better
// detection has taken, by IoU >= t. Precision at a recall r is the highest one at recalls >= r;
// average precision is its mean over r = 0, 0.01 ... 1, over t = 0.5, 0.55 ... 0.95 and over the
// categories that the data has boxes of. Of each image the 100 best detections of a category count.
struct BoxMeasures {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  double ap = kNone, ap50 = kNone, ap75 = kNone;  // over all t; at t = 0.5; at t = 0.75
  double ar100 = kNone;                           // highest recall, mean over t and categories
  // ap of boxes with areas up to 32^2 pixels, between, and from 96^2 on; others are ignored.
  double ap_small = kNone, ap_medium = kNone, ap_large = kNone;
  std::int64_t boxes = 0, detections = 0;  // of the data, without crowds; of the network
};

struct Box {
  double left = 0, top = 0, width = 0, height = 0;  // pixels of the image
};

// A box of the data. A crowd may be overlapped by any number of detections, which are then ignored;
// its IoU is the intersection by the area of the detection.
struct TrueBox {
  Box box;
  double area = 0;  // pixels; of the object's outline where the data knows it
  std::int64_t category = 0;
  bool crowd = false;
};

struct Detection {
  Box box;
  double score = 0;
  std::int64_t category = 0;
};

struct ImageBoxes {
  std::vector<TrueBox> truth;
  std::vector<Detection> detections;
};

// `images` in the order of their ids, which decides between equal scores. Categories: 0 to
// categories - 1.
BoxMeasures measure_boxes(const std::vector<ImageBoxes>& images, std::int64_t categories);

}  // namespace zsq::eval
