// SPDX-License-Identifier: Apache-2.0
// Values that change their places or are repeated, and constants that are made.
#include <ATen/ops/arange.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "models/aten/converters.h"

namespace zsq::models::aten {
namespace {

using Dims = std::vector<std::int64_t>;

std::int64_t axis_of(const Operation& op, std::int64_t axis, std::size_t dimensions) {
  const auto count = static_cast<std::int64_t>(dimensions);
  if (axis < -count || axis >= count) op.fail("an axis is out of range");
  return axis < 0 ? axis + count : axis;
}

std::string part(const Operation& op, std::int64_t axis, std::int64_t start, std::int64_t end) {
  return op.emit("Slice", {op.tensor("self"), op.constant(Dims{start}), op.constant(Dims{end}),
                           op.constant(Dims{axis})});
}

Value expanded(const Operation& op, Dims size) {
  const auto shape = op.shape("self");
  const bool constant = op.is_constant("self");
  const auto added = size.size() - std::min(size.size(), shape.size());
  for (std::size_t i = 0; i < size.size(); ++i) {
    // A constant is the same for each image: what is repeated along the batch broadcasts anyway.
    const bool batch = constant && size[i] == onnx::kBatch;
    if (size[i] == -1 || batch) size[i] = i < added ? 1 : shape[i - added];
  }
  return make_tensor(op.emit("Expand", {op.tensor("self"), op.constant(size)}));
}

Value filled(const Operation& op, Dims size, double value) {
  for (auto& length : size) length = length == onnx::kBatch ? 1 : length;
  double elements = 1;
  for (const auto length : size) elements *= static_cast<double>(length);
  constexpr double kMaxElements = 1 << 24;
  if (!(elements >= 0 && elements <= kMaxElements)) op.fail("makes an implausibly large constant");
  return make_tensor(op.constant(at::full(size, value, at::kFloat)));
}

}  // namespace

Value convert_expand(const Operation& op) { return expanded(op, op.integers("size")); }
Value convert_expand_as(const Operation& op) { return expanded(op, op.shape("other")); }

Value convert_repeat(const Operation& op) {
  return make_tensor(op.emit("Tile", {op.tensor("self"), op.constant(op.integers("repeats"))}));
}

// The numbers of repeats belong to the last dimensions.
Value convert_tile(const Operation& op) {
  auto repeats = op.integers("dims");
  const auto dimensions = op.shape("self").size();
  if (repeats.size() < dimensions) repeats.insert(repeats.begin(), dimensions - repeats.size(), 1);
  return make_tensor(op.emit("Tile", {op.tensor("self"), op.constant(repeats)}));
}

Value convert_repeat_interleave(const Operation& op) {
  auto shape = op.shape("self");
  const auto axis = axis_of(op, op.integer("dim", 0), shape.size());
  const auto repeats = op.integer("repeats", 0);
  if (axis == 0 || repeats < 1) op.fail("repeats the batch, or nothing");
  const auto x = op.emit("Unsqueeze", {op.tensor("self"), op.constant(Dims{axis + 1})});
  auto split = shape;
  split.insert(split.begin() + axis + 1, repeats);
  shape[static_cast<std::size_t>(axis)] *= repeats;
  return make_tensor(op.reshaped(op.emit("Expand", {x, op.constant(split)}), shape));
}

// The windows of a map in columns: a depthwise convolution that picks each place of the window.
Value convert_im2col(const Operation& op) {
  const auto shape = op.shape("self");
  if (shape.size() != 4) op.fail("needs an input N x C x H x W");
  const auto kernel = op.pair("kernel_size", 1), dilation = op.pair("dilation", 1),
             pad = op.pair("padding", 0), stride = op.pair("stride", 1);
  const auto places = kernel[0] * kernel[1];
  constexpr std::int64_t kMaxPlaces = 1 << 12, kMaxChannels = 1 << 14;
  if (places < 1 || places > kMaxPlaces || shape[1] > kMaxChannels)
    op.fail("the windows are implausibly large");
  const auto weight = at::eye(places, at::kFloat)
                          .reshape({1, places, 1, kernel[0], kernel[1]})
                          .repeat({shape[1], 1, 1, 1, 1})
                          .flatten(0, 1);
  const auto columns = op.emit("Conv", {op.tensor("self"), op.constant(weight)},
                               {{"strides", stride},
                                {"dilations", dilation},
                                {"pads", Dims{pad[0], pad[1], pad[0], pad[1]}},
                                {"group", shape[1]}});
  return make_tensor(op.reshaped(columns, {shape[0], shape[1] * places, -1}));
}

Value convert_flip(const Operation& op) {
  const auto axes = op.integers("dims");
  const Dims last(axes.size(), -1), open(axes.size(), std::numeric_limits<std::int64_t>::min());
  return make_tensor(op.emit("Slice", {op.tensor("self"), op.constant(last), op.constant(open),
                                       op.constant(axes), op.constant(last)}));
}

// x[:, places]: one constant list of places, of one dimension.
Value convert_index(const Operation& op) {
  const auto* indices = op.value("indices").list();
  if (!indices) op.fail("a list of indices was expected");
  std::optional<std::size_t> axis;
  for (std::size_t i = 0; i < indices->size(); ++i) {
    if ((*indices)[i].is_none()) continue;
    if (axis) op.fail("takes single values; the places of one dimension are known");
    axis = i;
  }
  if (!axis) return make_tensor(op.tensor("self"));
  const auto places = op.name_of((*indices)[*axis]);
  return make_tensor(
      op.emit("Gather", {op.tensor("self"), places}, {{"axis", static_cast<std::int64_t>(*axis)}}));
}

Value convert_view_as(const Operation& op) {
  return make_tensor(op.reshaped(op.tensor("self"), op.shape("other")));
}

Value convert_unflatten(const Operation& op) {
  auto shape = op.shape("self");
  const auto axis = axis_of(op, op.integer("dim", 0), shape.size());
  const auto sizes = op.integers("sizes");
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, sizes.begin(), sizes.end());
  return make_tensor(op.reshaped(op.tensor("self"), shape));
}

Value convert_movedim(const Operation& op) {
  const auto dimensions = op.shape("self").size();
  auto from = op.integers("source"), to = op.integers("destination");
  if (from.size() != to.size()) op.fail("as many destinations as sources were expected");
  Dims perm(dimensions, -1), rest;
  std::vector<bool> moved(dimensions);
  for (std::size_t i = 0; i < from.size(); ++i) {
    const auto source = axis_of(op, from[i], dimensions);
    perm[static_cast<std::size_t>(axis_of(op, to[i], dimensions))] = source;
    moved[static_cast<std::size_t>(source)] = true;
  }
  for (std::size_t i = 0; i < dimensions; ++i) {
    if (!moved[i]) rest.push_back(static_cast<std::int64_t>(i));
  }
  auto next = rest.begin();
  for (auto& axis : perm) {
    if (axis < 0 && next != rest.end()) axis = *next++;
  }
  return make_tensor(op.emit("Transpose", {op.tensor("self")}, {{"perm", perm}}));
}

Value convert_pixel_shuffle(const Operation& op) {
  return make_tensor(
      op.emit("DepthToSpace", {op.tensor("self")},
              {{"blocksize", op.integer("upscale_factor", 1)}, {"mode", std::string("CRD")}}));
}

Value convert_pixel_unshuffle(const Operation& op) {
  return make_tensor(
      op.emit("SpaceToDepth", {op.tensor("self")},
              {{"blocksize", op.integer("downscale_factor", 1)}, {"mode", std::string("CRD")}}));
}

Value convert_stack(const Operation& op) {
  const auto* tensors = op.value("tensors").list();
  if (!tensors || tensors->empty()) op.fail("a list of tensors was expected");
  const auto dimensions = op.shape_of((*tensors)[0]).size() + 1;
  const Dims axis{axis_of(op, op.integer("dim", 0), dimensions)};
  std::vector<std::string> parts;
  for (const auto& item : *tensors)
    parts.push_back(op.emit("Unsqueeze", {op.name_of(item), op.constant(axis)}));
  return make_tensor(op.emit("Concat", parts, {{"axis", axis[0]}}));
}

Value convert_unbind(const Operation& op) {
  const auto shape = op.shape("self");
  const auto axis = axis_of(op, op.integer("dim", 0), shape.size());
  const auto count = shape[static_cast<std::size_t>(axis)];
  if (axis == 0 || count > onnx::kMaxExtent) op.fail("the batch cannot be taken apart");
  std::vector<Value> parts;
  for (std::int64_t i = 0; i < count; ++i) {
    parts.push_back(
        make_tensor(op.emit("Squeeze", {part(op, axis, i, i + 1), op.constant(Dims{axis})})));
  }
  return make_list(std::move(parts));
}

Value convert_narrow(const Operation& op) {
  const auto shape = op.shape("self");
  const auto axis = axis_of(op, op.integer("dim", 0), shape.size());
  auto start = op.integer("start", 0);
  start += start < 0 ? shape[static_cast<std::size_t>(axis)] : 0;
  return make_tensor(part(op, axis, start, start + op.integer("length", 0)));
}

Value convert_index_select(const Operation& op) {
  return make_tensor(
      op.emit("Gather", {op.tensor("self"), op.tensor("index")}, {{"axis", op.integer("dim", 0)}}));
}

Value convert_roll(const Operation& op) {
  const auto shape = op.shape("self");
  const auto shifts = op.integers("shifts"), axes = op.integers("dims");
  if (axes.size() != shifts.size() || axes.empty()) op.fail("one shift per dimension was expected");
  auto x = op.tensor("self");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = axis_of(op, axes[i], shape.size());
    const auto size = shape[static_cast<std::size_t>(axis)];
    if (axis == 0 || size < 1) op.fail("the batch cannot be shifted");
    const auto shift = (shifts[i] % size + size) % size;
    if (shift == 0) continue;
    const auto halves =
        op.emit("Split", {x, op.constant(Dims{size - shift, shift})}, {{"axis", axis}}, 2);
    x = op.emit("Concat", {halves[1], halves[0]}, {{"axis", axis}});
  }
  return make_tensor(x);
}

Value convert_full(const Operation& op) {
  return filled(op, op.integers("size"), op.number("fill_value", 0));
}
Value convert_full_like(const Operation& op) {
  return filled(op, op.shape("self"), op.number("fill_value", 0));
}
Value convert_zeros(const Operation& op) { return filled(op, op.integers("size"), 0); }
Value convert_ones(const Operation& op) { return filled(op, op.integers("size"), 1); }
Value convert_zeros_like(const Operation& op) { return filled(op, op.shape("self"), 0); }
Value convert_ones_like(const Operation& op) { return filled(op, op.shape("self"), 1); }

// Up to `start` where it is the only number.
Value convert_arange(const Operation& op) {
  const bool one = !op.has("end");
  const auto start = one ? 0 : op.integer("start", 0);
  const auto end = one ? op.integer("start", 0) : op.integer("end", 0);
  const auto step = op.integer("step", 1);
  if (start == onnx::kBatch || end == onnx::kBatch)
    op.fail(std::string("counts up to the batch size") + onnx::kExportWithFixedBatch);
  if (step == 0 || (end - start) / step > onnx::kMaxExtent) op.fail("counts without end");
  return make_tensor(op.constant(at::arange(start, end, step, at::kLong)));
}

}  // namespace zsq::models::aten
