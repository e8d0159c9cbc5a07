// SPDX-License-Identifier: Apache-2.0
// Where the outputs of a detector hold boxes and scores. A: boxes of an image, C: classes; sizes
// are without the batch. Scores are probabilities, after sigmoid or softmax.
//   yolov8   one output [4 + C, A]: centre x, y, width and height in pixels of the input, scores.
//            YOLOv8 and its successors with the same head (Ultralytics' export without NMS).
//   yolov5   one output [A, 5 + C]: the same, objectness, scores; both multiplied count. YOLOv5,
//            YOLOv7; YOLOv6 and YOLOX if exported with boxes decoded.
//   ssd      boxes [A, 4]: left, top, right, bottom, decoded; scores [A, C], or [A, 1 + C] with the
//            background first. UltraFace. So is what most non-maximum suppressions read, where the
//            network's file has one.
//   yunet    OpenCV's face detector of 2023 (FaceDetectorYN): cls_S [A, 1], obj_S [A, 1] and bbox_S
//            [A, 4] for S = 8, 16, 32. In row r and column c of the map of stride S: centre
//            ((c + b0) S, (r + b1) S), size (exp(b2) S, exp(b3) S), score sqrt(cls obj).
//   decoded  boxes [K, 4] as those of ssd, scores [K], labels [K]: class indices, below 0 none;
//            without non-maximum suppression.
#pragma once
#include <string>
#include <vector>

#include "eval/coco_file.h"
#include "eval/network_end.h"
#include "eval/options.h"
#include "models/execute.h"

namespace zsq::eval {

struct BoxHead {
  BoxLayout layout = BoxLayout::yolov8;
  // ssd: boxes, scores; yunet: cls, obj and bbox of each stride; decoded: boxes, scores, labels.
  std::vector<std::size_t> outputs;
  // Index of the category that each column of the scores is of; -1: none.
  std::vector<std::int64_t> categories;
  bool by_id = false;  // column i is the category of id i, not the i-th
  // ssd before operators that zsq does not compute: boxes are centres and sizes.
  bool centred = false;
};

// `outputs`: of any one image. Layout::automatic: yolov8 and yolov5 by one output with as many
// boxes as maps of strides 8, 16, 32 (and 64) have places, yolov5 with three in each; ssd by two
// outputs [A, 4] and [A, C], of which names or the end of the network tell the boxes; yunet and
// decoded by names. Before operators that zsq does not compute, ssd may have scores [C, A], and
// lists of one number per box beside, as their largest score. Columns are categories in the order
// of the file; 91 are ids of categories (COCO's, with gaps). Error(usage): no layout, or not the
// one asked for, with all outputs; another number of classes than categories.
BoxHead find_head(const std::vector<models::FileTensor>& outputs, const ImageSize& input,
                  BoxLayout asked, const CocoFile& file, const NetworkEnd& end = {});

struct Candidates {
  at::Tensor corners;  // f32 [N, A, 4]: left, top, right, bottom; as the outputs have them
  at::Tensor scores;   // f32 [N, A, C], of BoxHead::categories
};

// Outputs f32 [N, ...] on the CPU. Error(usage): labels that are no categories.
Candidates decode(const BoxHead& head, const std::vector<models::FileTensor>& outputs,
                  const ImageSize& input);

}  // namespace zsq::eval
