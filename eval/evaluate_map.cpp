// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/diag.h>
#include <ATen/ops/movedim.h>

#include "core/error.h"
#include "eval/evaluate.h"

namespace zsq::eval {
namespace {

std::string size_of(const at::Tensor& map) {
  return std::to_string(map.size(-2)) + "x" + std::to_string(map.size(-1));
}

}  // namespace

const models::Output* only_map(const models::OutputRow& row) {
  if (row.outputs().size() != 1) return nullptr;
  const models::Output& output = row.outputs().front();
  return output.kind == models::OutputKind::map && output.shape.size() == 3 ? &output : nullptr;
}

void MapCounts::add_rows(const models::Output& map, const at::Tensor& rows,
                         const at::Tensor& masks) {
  std::vector<std::int64_t> shape = map.shape;
  shape.insert(shape.begin(), rows.size(0));
  add(rows.view(shape).movedim(map.axis, 1), masks);
}

void MapCounts::add(const at::Tensor& logits, const at::Tensor& masks) {
  if (logits.dim() != 4 || masks.dim() != 3 || masks.sizes().slice(1) != logits.sizes().slice(2))
    throw Error(ErrorCode::bad_input, "the network gives maps of " + size_of(logits) +
                                          ", the masks are " +
                                          (masks.dim() == 3 ? size_of(masks) : "one label each") +
                                          ": masks have to be as large as the maps");
  const std::int64_t classes = logits.size(1);
  const at::Tensor known = masks.ne(kVoidLabel);
  const at::Tensor labels = masks.masked_select(known);
  if (labels.numel() > 0 &&
      (labels.min().item<std::int64_t>() < 0 || labels.max().item<std::int64_t>() >= classes))
    throw Error(ErrorCode::bad_input, "a mask has label " +
                                          std::to_string(labels.max().item<std::int64_t>()) +
                                          ", the network has " + std::to_string(classes) +
                                          " classes: data and network do not belong together");
  const at::Tensor pairs = labels.mul(classes).add(logits.argmax(1).masked_select(known));
  const at::Tensor counted = pairs.bincount({}, classes * classes).view({classes, classes});
  confusion_ = confusion_.defined() ? confusion_.add(counted) : counted;
}

double MapCounts::pixel_accuracy() const {
  const auto all = confusion_.sum().item<double>();
  return all > 0 ? 100 * confusion_.diag().sum().item<double>() / all : 0;
}

double MapCounts::mean_iou() const {
  const at::Tensor both = confusion_.diag();
  const at::Tensor either = confusion_.sum(0).add(confusion_.sum(1)).sub(both);
  const at::Tensor named = either.gt(0);
  if (!named.any().item<bool>()) return 0;
  const at::Tensor iou = both.to(at::kDouble).div(either).masked_select(named);
  return 100 * iou.mean().item<double>();
}

Figures MapCounts::figures() const {
  return {{"pixel_accuracy", pixel_accuracy()}, {"mean_iou", mean_iou()}};
}

}  // namespace zsq::eval
