// SPDX-License-Identifier: Apache-2.0
#include "eval/box_counts.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

namespace zsq::eval {
namespace {

bool overlap_by_more(const Box& a, const Box& b, double iou) {
  const double width = std::min(a.left + a.width, b.left + b.width) - std::max(a.left, b.left);
  const double height = std::min(a.top + a.height, b.top + b.height) - std::max(a.top, b.top);
  if (width <= 0 || height <= 0) return false;
  const double both = width * height;
  return both > iou * (a.width * a.height + b.width * b.height - both);
}

// Of one image: corners [A, 4] and scores [A, C].
std::vector<Detection> candidates_of(const float* corners, const float* scores, std::int64_t boxes,
                                     const std::vector<std::int64_t>& categories, double score) {
  std::vector<Detection> found;
  for (std::int64_t a = 0; a < boxes; ++a, corners += 4) {
    const Box box{corners[0], corners[1], corners[2] - corners[0], corners[3] - corners[1]};
    const bool real = std::isfinite(box.left + box.top + box.width + box.height) &&
                      box.width >= 0 && box.height >= 0;
    for (const std::int64_t category : categories) {
      const double value = *scores++;
      if (real && category >= 0 && value > score) found.push_back({box, value, category});
    }
  }
  return found;
}

// A stretch of the input on the image, without what lies outside of it.
void map_side(double& begin, double& length, double scale, double offset, double image) {
  const double low = std::clamp(begin * scale + offset, 0.0, image);
  const double high = std::clamp((begin + length) * scale + offset, 0.0, image);
  begin = low;
  length = high - low;
}

double iou_of(const DataOptions& options, BoxLayout layout, const NetworkEnd& end) {
  if (layout == BoxLayout::decoded) return 1;
  if (end.takes_best) return options.box_nms_iou.value_or(1);
  return options.box_nms_iou.value_or(layout == BoxLayout::yolov8 ? 0.7 : 0.65);
}

}  // namespace

std::vector<std::size_t> suppress(const std::vector<Detection>& boxes, double iou,
                                  std::int64_t most) {
  std::vector<std::size_t> order(boxes.size()), kept;
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](std::size_t i) { return boxes[i].score; });
  for (const std::size_t i : order) {
    if (std::ssize(kept) == most) break;
    const bool worse = std::ranges::any_of(kept, [&](std::size_t k) {
      return boxes[k].category == boxes[i].category &&
             overlap_by_more(boxes[k].box, boxes[i].box, iou);
    });
    if (!worse) kept.push_back(i);
  }
  return kept;
}

BoxCounts::BoxCounts(const models::Graph& graph, std::int64_t outputs, const CocoFile& file,
                     const DataOptions& options)
    : graph_(graph),
      file_(file),
      options_(options),
      input_{graph_.input_shape[1], graph_.input_shape[2]},
      head_(find_head(models::as_file_outputs(graph_, at::zeros({1, outputs})), input_,
                      options.boxes, file, end_of(graph_))) {
  options_.box_nms_iou = iou_of(options, head_.layout, end_of(graph_));
}

void BoxCounts::add(const at::Tensor& rows, const at::Tensor& labels) {
  const Candidates found = decode(head_, models::as_file_outputs(graph_, rows), input_);
  const at::Tensor corners = found.corners.contiguous(), scores = found.scores.contiguous();
  if (options_.box_units == BoxUnits::automatic) {
    const bool open = head_.layout == BoxLayout::ssd || head_.layout == BoxLayout::decoded;
    options_.box_units =
        open && corners.abs().max().item<float>() <= 2 ? BoxUnits::relative : BoxUnits::pixels;
  }
  const bool relative = options_.box_units == BoxUnits::relative;
  const double width = relative ? 1 : static_cast<double>(input_.width);
  const double height = relative ? 1 : static_cast<double>(input_.height);
  for (std::int64_t i = 0; i < rows.size(0); ++i) {
    auto boxes =
        candidates_of(corners[i].const_data_ptr<float>(), scores[i].const_data_ptr<float>(),
                      corners.size(1), head_.categories, options_.box_score);
    if (boxes.size() > kMostCandidates) {
      std::ranges::stable_sort(boxes, std::ranges::greater{}, &Detection::score);
      boxes.resize(kMostCandidates);
    }
    const double* label = labels[i].const_data_ptr<double>();
    auto& image = images_.emplace_back();
    image.truth = file_.images[static_cast<std::size_t>(label[0])].boxes;
    for (const std::size_t k : suppress(boxes, *options_.box_nms_iou, options_.max_boxes)) {
      Detection& kept = image.detections.emplace_back(boxes[k]);
      map_side(kept.box.left, kept.box.width, label[3] / width, label[1], label[5]);
      map_side(kept.box.top, kept.box.height, label[4] / height, label[2], label[6]);
    }
  }
}

BoxMeasures BoxCounts::result() const {
  return measure_boxes(images_, std::ssize(file_.categories));
}

}  // namespace zsq::eval
