// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "eval/box_head.h"
#include "eval/evaluate.h"
#include "models/graph.h"

namespace zsq::eval {

// Indices of the boxes that non-maximum suppression keeps, `most` at most, best first: a box goes
// where one of its class and of a higher score (of equal ones, the earlier) overlaps it by more
// than `iou`; 1 keeps all. Torchvision's batched_nms does the same.
std::vector<std::size_t> suppress(const std::vector<Detection>& boxes, double iou,
                                  std::int64_t most);

// What a detector finds, image by image, for measure_boxes(). Of each image the kMostCandidates
// pairs of box and class with the highest scores above data.box_score are suppressed by
// data.box_nms_iou, and data.max_boxes kept, mapped into the image and clipped to it.
class BoxCounts {
 public:
  static constexpr std::size_t kMostCandidates = 30'000;

  // outputs: K, the numbers of a row. Errors of find_head(). Keeps references to graph and file.
  BoxCounts(const models::Graph& graph, std::int64_t outputs, const CocoFile& file,
            const DataOptions& options);

  // Rows of the graph, f32 [N, K] on the CPU, and the labels of BoxedImages.
  void add(const at::Tensor& rows, const at::Tensor& labels);

  const BoxHead& head() const { return head_; }
  BoxMeasures result() const;

 private:
  const models::Graph& graph_;
  const CocoFile& file_;
  DataOptions options_;
  ImageSize input_;
  BoxHead head_;
  std::vector<ImageBoxes> images_;
};

}  // namespace zsq::eval
