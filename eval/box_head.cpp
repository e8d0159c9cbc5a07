// SPDX-License-Identifier: Apache-2.0
#include "eval/box_head.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>

#include "core/error.h"

namespace zsq::eval {
namespace {

constexpr std::array<std::int64_t, 3> kStrides{8, 16, 32};
constexpr std::int64_t kCocoIds = 91;  // of 80 categories, with 0 for the background

using Outputs = std::vector<models::FileTensor>;
using Indices = std::vector<std::size_t>;

// Without the batch and without a 1 between others.
std::vector<std::int64_t> shape_of(const models::FileTensor& output) {
  auto shape = output.value.sizes().slice(1).vec();
  if (shape.size() == 3 && shape[1] == 1) shape.erase(shape.begin() + 1);
  return shape;
}

// The output as [N, rows, columns].
at::Tensor table(const models::FileTensor& output) {
  const auto shape = shape_of(output);
  return output.value.reshape({output.value.size(0), shape[0], shape.size() > 1 ? shape[1] : 1});
}

bool is_table(const std::vector<std::int64_t>& shape) { return shape.size() == 2; }
bool has_boxes(const std::vector<std::int64_t>& shape) { return is_table(shape) && shape[1] == 4; }
bool is_list(const std::vector<std::int64_t>& shape) {
  return shape.size() == 1 || (is_table(shape) && shape[1] == 1);
}

// Places of the maps of strides 8, 16, 32 and, in large networks, 64.
bool fills_maps(std::int64_t boxes, std::int64_t per_place, const ImageSize& input) {
  std::int64_t places = 0;
  for (const std::int64_t stride : {8, 16, 32, 64}) {
    places += ((input.height + stride - 1) / stride) * ((input.width + stride - 1) / stride);
    if (stride >= 32 && boxes == per_place * places) return true;
  }
  return false;
}

// The only output that `fits`; empty if there is none or another.
template <class Fits>
Indices only(const Outputs& outputs, Fits fits) {
  Indices found;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (fits(outputs[i], shape_of(outputs[i]))) found.push_back(i);
  return found.size() == 1 ? found : Indices{};
}

bool is_named(const models::FileTensor& output, std::initializer_list<const char*> words) {
  return std::ranges::any_of(
      words, [&](const char* word) { return output.name.find(word) != std::string::npos; });
}

Indices find_yolo(const Outputs& outputs, const ImageSize& input, bool v8, bool certain) {
  return only(outputs, [&](const auto&, const auto& shape) {
    return is_table(shape) && shape[v8 ? 0 : 1] > (v8 ? 4 : 5) &&
           (!certain || fills_maps(shape[v8 ? 1 : 0], v8 ? 1 : 3, input));
  });
}

// Scores of `boxes` boxes; what an opaque end reads may have them in columns.
bool are_scores(const std::vector<std::int64_t>& shape, std::int64_t boxes, const NetworkEnd& end) {
  return is_table(shape) && (shape[0] == boxes || (!end.opaque.empty() && shape[1] == boxes));
}

// The output that goes with these boxes; of more than two, the others are lists.
Indices scores_of(const Outputs& outputs, std::size_t boxes, const NetworkEnd& end) {
  const bool pair = outputs.size() == 2;
  Indices tables;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (i != boxes && (pair || !is_list(shape_of(outputs[i])))) tables.push_back(i);
  const bool fits = tables.size() == 1 &&
                    are_scores(shape_of(outputs[tables[0]]), shape_of(outputs[boxes])[0], end);
  return fits ? tables : Indices{};
}

Indices find_ssd(const Outputs& outputs, const NetworkEnd& end) {
  if (outputs.size() != 2 && end.opaque.empty()) return {};
  const auto is_probability = [&](const models::FileTensor& output) {
    const auto i = static_cast<std::size_t>(&output - outputs.data());
    return i < end.is_probability.size() && end.is_probability[i];
  };
  enum class Tells { name, function, shape };
  for (const Tells by : {Tells::name, Tells::function, Tells::shape}) {
    const Indices boxes = only(outputs, [&](const auto& output, const auto& shape) {
      if (!has_boxes(shape)) return false;
      if (by == Tells::name) return is_named(output, {"box", "loc"});
      return by == Tells::shape || !is_probability(output);
    });
    if (boxes.empty()) continue;
    const Indices scores = scores_of(outputs, boxes[0], end);
    if (!scores.empty()) return {boxes[0], scores[0]};
  }
  return {};
}

Indices find_yunet(const Outputs& outputs, const ImageSize& input) {
  Indices found;
  for (const std::int64_t stride : kStrides)
    for (const auto& [name, columns] : {std::pair("cls_", 1), {"obj_", 1}, {"bbox_", 4}}) {
      const std::int64_t numbers = columns * (input.height / stride) * (input.width / stride);
      const auto one = only(outputs, [&](const auto& output, const auto&) {
        return output.name == name + std::to_string(stride) && output.value[0].numel() == numbers;
      });
      if (one.empty()) return {};
      found.push_back(one[0]);
    }
  return found;
}

Indices find_decoded(const Outputs& outputs, bool certain) {
  if (outputs.size() != 3) return {};
  const Indices boxes =
      only(outputs, [](const auto&, const auto& shape) { return has_boxes(shape); });
  if (boxes.empty()) return {};
  const auto list = [&](std::initializer_list<const char*> words) {
    return only(outputs, [&](const auto& output, const auto& shape) {
      return is_list(shape) && shape[0] == shape_of(outputs[boxes[0]])[0] &&
             is_named(output, words);
    });
  };
  const Indices scores = list({"score", "conf"}), labels = list({"label", "class", "cls"});
  if (!scores.empty() && !labels.empty() && scores != labels)
    return {boxes[0], scores[0], labels[0]};
  if (certain) return {};
  Indices rest;
  for (std::size_t i = 0; i < 3; ++i)
    if (i != boxes[0] && is_list(shape_of(outputs[i]))) rest.push_back(i);
  return rest.size() == 2 ? Indices{boxes[0], rest[0], rest[1]} : Indices{};
}

// `certain`: by names and shapes that nothing else has.
Indices find_layout(BoxLayout layout, const Outputs& outputs, const ImageSize& input,
                    const NetworkEnd& end, bool certain) {
  switch (layout) {
    case BoxLayout::yolov8:
    case BoxLayout::yolov5:
      return find_yolo(outputs, input, layout == BoxLayout::yolov8, certain);
    case BoxLayout::ssd:
      return find_ssd(outputs, end);
    case BoxLayout::yunet:
      return find_yunet(outputs, input);
    case BoxLayout::decoded:
      return find_decoded(outputs, certain);
    case BoxLayout::automatic:
      break;
  }
  return {};
}

[[noreturn]] void refuse_outputs(const Outputs& outputs, BoxLayout asked, const CocoFile& file,
                                 const NetworkEnd& end) {
  std::string found;
  for (const auto& output : outputs) {
    found += (found.empty() ? "'" : ", '") + output.name + "' [";
    for (const auto size : output.value.sizes().slice(1))
      found += (found.back() == '[' ? "" : ", ") + std::to_string(size);
    found += "]";
  }
  const std::string wanted = asked == BoxLayout::automatic
                                 ? "are in no layout of boxes that shapes and names tell"
                                 : "are not as --boxes " + std::string(enum_name(asked)) + " says";
  throw Error(ErrorCode::usage,
              file.path + " has boxes, and " +
                  (end.opaque.empty() ? "the outputs of the network "
                                      : "what the last operators of the network read (" +
                                            end.opaque + ", which zsq does not compute) ") +
                  wanted + ": " + found +
                  ". Layouts, which --boxes names: yolov8 [4 + classes, boxes], yolov5 [boxes, 5 "
                  "+ classes], ssd (boxes [A, 4] and scores [A, classes]), yunet (cls_8, obj_8, "
                  "bbox_8, cls_16, ...), decoded (boxes [K, 4], scores [K], labels [K])");
}

// As many columns as there are categories or, with a background, one more.
void assign_categories(BoxHead& head, std::int64_t columns, const CocoFile& file) {
  const auto count = std::ssize(file.categories);
  head.categories.assign(static_cast<std::size_t>(columns), -1);
  head.by_id = columns == kCocoIds;
  const bool background = head.layout == BoxLayout::ssd && columns == count + 1;
  if (!head.by_id && !background && columns != count)
    throw Error(ErrorCode::usage, "the network has scores of " + std::to_string(columns) +
                                      " classes, and " + file.path + " has " +
                                      std::to_string(count) +
                                      " categories; the i-th class has to be the i-th category, "
                                      "or 91 classes their ids");
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t id = file.categories[static_cast<std::size_t>(i)].id;
    const std::int64_t column = head.by_id ? id : i + (background ? 1 : 0);
    if (column < 0 || column >= columns)
      throw Error(ErrorCode::usage, file.path + " has a category of id " + std::to_string(id) +
                                        "; a network of 91 classes has ids of 0 to 90");
    head.categories[static_cast<std::size_t>(column)] = i;
  }
}

// Scores of ssd, [N, boxes, columns].
at::Tensor scores_table(const BoxHead& head, const Outputs& outputs) {
  const at::Tensor scores = table(outputs[head.outputs[1]]);
  const bool in_columns = scores.size(1) != table(outputs[head.outputs[0]]).size(1);
  return in_columns ? scores.transpose(1, 2) : scores;
}

std::int64_t columns_of(const BoxHead& head, const Outputs& outputs, const CocoFile& file) {
  const auto shape = shape_of(outputs[head.outputs.front()]);
  if (head.layout == BoxLayout::yolov8) return shape[0] - 4;
  if (head.layout == BoxLayout::yolov5) return shape[1] - 5;
  if (head.layout == BoxLayout::ssd) return scores_table(head, outputs).size(2);
  return head.layout == BoxLayout::yunet ? 1 : std::ssize(file.categories);
}

at::Tensor from_centres(const at::Tensor& centre, const at::Tensor& size) {
  const at::Tensor half = size.mul(0.5);
  return at::cat({centre.sub(half), centre.add(half)}, 2);
}

Candidates decode_yunet(const BoxHead& head, const Outputs& outputs, const ImageSize& input) {
  std::vector<at::Tensor> corners, scores;
  for (std::size_t i = 0; i < kStrides.size(); ++i) {
    const auto stride = kStrides[i], rows = input.height / stride, columns = input.width / stride;
    const auto part = [&](std::size_t which, std::int64_t width) {
      const at::Tensor& value = outputs[head.outputs[3 * i + which]].value;
      return value.reshape({value.size(0), rows * columns, width});
    };
    const at::Tensor place = at::arange(rows * columns, at::kLong);
    const at::Tensor grid = at::cat(
        {place.remainder(columns).unsqueeze(1), place.floor_divide(columns).unsqueeze(1)}, 1);
    const at::Tensor box = part(2, 4);
    corners.push_back(from_centres(box.narrow(2, 0, 2).add(grid).mul(stride),
                                   box.narrow(2, 2, 2).exp().mul(stride)));
    scores.push_back(part(0, 1).clamp(0, 1).mul(part(1, 1).clamp(0, 1)).sqrt());
  }
  return {at::cat(corners, 1), at::cat(scores, 1)};
}

Candidates decode_labelled(const BoxHead& head, const Outputs& outputs) {
  const at::Tensor scores = table(outputs[head.outputs[1]]);
  const at::Tensor labels = table(outputs[head.outputs[2]]).round().to(at::kLong);
  const auto classes = std::ssize(head.categories);
  if (labels.numel() > 0 && labels.max().item<std::int64_t>() >= classes)
    throw Error(ErrorCode::usage, "the network gives label " +
                                      std::to_string(labels.max().item<std::int64_t>()) + " of " +
                                      std::to_string(classes) + " categories");
  // Labels below 0 go to a column of their own.
  at::Tensor columns = at::zeros({scores.size(0), scores.size(1), classes + 1}, at::kFloat);
  columns.scatter_(2, labels.clamp_min(-1).add(1), scores);
  return {table(outputs[head.outputs[0]]), columns.narrow(2, 1, classes)};
}

}  // namespace

BoxHead find_head(const Outputs& outputs, const ImageSize& input, BoxLayout asked,
                  const CocoFile& file, const NetworkEnd& end) {
  BoxHead head;
  for (const auto layout : {BoxLayout::yunet, BoxLayout::decoded, BoxLayout::yolov8,
                            BoxLayout::yolov5, BoxLayout::ssd}) {
    if (asked != BoxLayout::automatic && asked != layout) continue;
    head.layout = layout;
    head.outputs = find_layout(layout, outputs, input, end, asked == BoxLayout::automatic);
    if (!head.outputs.empty()) break;
  }
  if (head.outputs.empty()) refuse_outputs(outputs, asked, file, end);
  head.centred = head.layout == BoxLayout::ssd && end.centred;
  assign_categories(head, columns_of(head, outputs, file), file);
  return head;
}

Candidates decode(const BoxHead& head, const Outputs& outputs, const ImageSize& input) {
  if (head.layout == BoxLayout::yunet) return decode_yunet(head, outputs, input);
  if (head.layout == BoxLayout::decoded) return decode_labelled(head, outputs);
  at::Tensor first = table(outputs[head.outputs[0]]);
  if (head.layout == BoxLayout::ssd)
    return {head.centred ? from_centres(first.narrow(2, 0, 2), first.narrow(2, 2, 2)) : first,
            scores_table(head, outputs)};
  if (head.layout == BoxLayout::yolov8) first = first.transpose(1, 2);
  const at::Tensor corners = from_centres(first.narrow(2, 0, 2), first.narrow(2, 2, 2));
  const auto classes = std::ssize(head.categories);
  const at::Tensor scores = first.narrow(2, first.size(2) - classes, classes);
  return {corners, head.layout == BoxLayout::yolov5 ? scores.mul(first.narrow(2, 4, 1)) : scores};
}

}  // namespace zsq::eval
