// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "models/aten/converters.h"

namespace zsq::models::aten {
namespace {

using Dims = std::vector<std::int64_t>;

std::int64_t extent(const Operation& op, std::int64_t axis) {
  const auto shape = op.shape("self");
  const auto count = static_cast<std::int64_t>(shape.size());
  axis += axis < 0 ? count : 0;
  if (axis < 1 || axis >= count) op.fail("the axis is out of range, or is the batch");
  return shape[static_cast<std::size_t>(axis)];
}

Value split(const Operation& op, const Dims& sizes) {
  if (sizes.empty()) op.fail("makes no parts");
  const auto names = op.emit("Split", {op.tensor("self"), op.constant(sizes)},
                             {{"axis", op.integer("dim", 0)}}, sizes.size());
  std::vector<Value> parts;
  for (const auto& name : names) parts.push_back(make_tensor(name));
  return make_list(std::move(parts));
}

// Parts of `size`, the last one with what is left.
Value split_equally(const Operation& op, std::int64_t size) {
  const auto total = extent(op, op.integer("dim", 0));
  if (size < 1) op.fail("the parts must have a positive size");
  Dims sizes;
  for (std::int64_t start = 0; start < total; start += size) {
    sizes.push_back(std::min(size, total - start));
  }
  return split(op, sizes);
}

}  // namespace

Value convert_cat(const Operation& op) {
  const auto* tensors = op.value("tensors").list();
  if (!tensors || tensors->empty()) op.fail("a list of tensors was expected");
  std::vector<std::string> names;
  for (const auto& item : *tensors) names.push_back(op.name_of(item));
  return make_tensor(op.emit("Concat", names, {{"axis", op.integer("dim", 0)}}));
}

// Of signals and maps along dimension 1, of rows along 0.
Value convert_hstack(const Operation& op) {
  const auto* tensors = op.value("tensors").list();
  if (!tensors || tensors->empty()) op.fail("a list of tensors was expected");
  std::vector<std::string> names;
  for (const auto& item : *tensors) names.push_back(op.name_of(item));
  const std::int64_t axis = op.shape_of((*tensors)[0]).size() > 1 ? 1 : 0;
  return make_tensor(op.emit("Concat", names, {{"axis", axis}}));
}

// A number of parts, of which the first have one more, or the places of the cuts.
Value convert_tensor_split(const Operation& op) {
  const char* name = op.has("sections")  ? "sections"
                     : op.has("indices") ? "indices"
                                         : "indices_or_sections";
  const auto total = extent(op, op.integer("dim", 0));
  Dims sizes;
  if (!op.value(name).list()) {
    const auto count = op.integer(name, 0);
    if (count < 1 || count > total) op.fail("the number of parts must be between 1 and the size");
    for (std::int64_t i = 0; i < count; ++i)
      sizes.push_back(total / count + (i < total % count ? 1 : 0));
    return split(op, sizes);
  }
  std::int64_t start = 0;
  auto cuts = op.integers(name);
  cuts.push_back(total);
  for (const auto cut : cuts) {
    if (cut <= start || cut > total) op.fail("the places of the cuts must grow within the size");
    sizes.push_back(cut - start);
    start = cut;
  }
  return split(op, sizes);
}

Value convert_chunk(const Operation& op) {
  const auto chunks = op.integer("chunks", 0);
  const auto total = extent(op, op.integer("dim", 0));
  if (chunks < 1 || chunks > total) op.fail("the number of parts must be between 1 and the size");
  return split_equally(op, (total + chunks - 1) / chunks);
}

Value convert_split(const Operation& op) {
  const auto* name = op.has("split_size") ? "split_size" : "split_sizes";
  if (op.value(name).list()) return split(op, op.integers(name));
  return split_equally(op, op.integer(name, 0));
}

Value convert_slice(const Operation& op) {
  const Dims start{op.integer("start", 0)}, axis{op.integer("dim", 0)}, step{op.integer("step", 1)};
  const Dims end{op.integer("end", std::numeric_limits<std::int64_t>::max())};
  return make_tensor(op.emit("Slice", {op.tensor("self"), op.constant(start), op.constant(end),
                                       op.constant(axis), op.constant(step)}));
}

Value convert_select(const Operation& op) {
  const Dims axis{op.integer("dim", 0)};
  const auto total = extent(op, axis[0]);
  auto index = op.integer("index", 0);
  index += index < 0 ? total : 0;
  if (index < 0 || index >= total) op.fail("the index is out of range");
  const auto slice = op.emit("Slice", {op.tensor("self"), op.constant(Dims{index}),
                                       op.constant(Dims{index + 1}), op.constant(axis)});
  return make_tensor(op.emit("Squeeze", {slice}, {{"axes", axis}}));
}

}  // namespace zsq::models::aten
