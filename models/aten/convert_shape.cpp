// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <numeric>

#include "models/aten/converters.h"

namespace zsq::models::aten {
namespace {

using Dims = std::vector<std::int64_t>;

std::size_t from_front(const Operation& op, std::int64_t axis, std::size_t dimensions) {
  const auto count = static_cast<std::int64_t>(dimensions);
  if (axis < -count || axis >= count) op.fail("an axis is out of range");
  return static_cast<std::size_t>(axis < 0 ? axis + count : axis);
}

// Of a constant matrix, what it is the transpose of stays known: layers store the original.
Value permuted(const Operation& op, const Dims& perm) {
  const auto x = op.tensor("self");
  auto result = make_tensor(op.emit("Transpose", {x}, {{"perm", perm}}));
  if (op.is_constant("self") && perm == Dims{1, 0}) result.tensor()->transposed = x;
  return result;
}

Value swapped(const Operation& op, std::int64_t first, std::int64_t second) {
  const auto dimensions = op.shape("self").size();
  Dims perm(dimensions);
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[from_front(op, first, dimensions)], perm[from_front(op, second, dimensions)]);
  return permuted(op, perm);
}

}  // namespace

Value convert_view(const Operation& op) {
  const auto* name = op.has("size") ? "size" : "shape";
  return make_tensor(op.reshaped(op.tensor("self"), op.integers(name)));
}

Value convert_flatten(const Operation& op) {
  const auto shape = op.shape("self");
  const auto first = from_front(op, op.integer("start_dim", 0), shape.size());
  const auto last = from_front(op, op.integer("end_dim", -1), shape.size());
  if (first == 0 && last > 0 && !op.is_constant("self"))
    op.fail("the batch would be merged with the image");
  if (first >= last) return make_tensor(op.tensor("self"));
  if (first == 1 && last + 1 == shape.size()) {
    return make_tensor(op.emit("Flatten", {op.tensor("self")}));
  }
  Dims flat(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(first));
  std::int64_t merged = 1;
  for (auto i = first; i <= last; ++i) merged *= shape[i];
  flat.push_back(merged);
  flat.insert(flat.end(), shape.begin() + static_cast<std::ptrdiff_t>(last) + 1, shape.end());
  return make_tensor(op.reshaped(op.tensor("self"), flat));
}

// Dimensions that are not 1 stay, without an error.
Value convert_squeeze(const Operation& op) {
  const auto shape = op.shape("self");
  Dims all(shape.size());
  std::iota(all.begin(), all.end(), 0);
  Dims axes;
  for (const auto axis : op.integers("dim", all)) {
    const auto at = from_front(op, axis, shape.size());
    if (shape[at] == 1) axes.push_back(static_cast<std::int64_t>(at));
  }
  if (axes.empty()) return make_tensor(op.tensor("self"));
  return make_tensor(op.emit("Squeeze", {op.tensor("self")}, {{"axes", axes}}));
}

Value convert_unsqueeze(const Operation& op) {
  const Dims axes{op.integer("dim", 0)};
  return make_tensor(op.emit("Unsqueeze", {op.tensor("self")}, {{"axes", axes}}));
}

Value convert_permute(const Operation& op) {
  auto perm = op.integers("dims");
  for (auto& axis : perm) axis = static_cast<std::int64_t>(from_front(op, axis, perm.size()));
  return permuted(op, perm);
}

Value convert_transpose(const Operation& op) {
  return swapped(op, op.integer("dim0", 0), op.integer("dim1", 0));
}

Value convert_swapaxes(const Operation& op) {
  return swapped(op, op.integer("axis0", 0), op.integer("axis1", 0));
}

Value convert_mt(const Operation& op) {
  if (op.shape("self").size() < 2) op.fail("needs at least two dimensions");
  return swapped(op, -2, -1);
}

Value convert_t(const Operation& op) {
  if (op.shape("self").size() != 2) op.fail("a matrix was expected");
  return swapped(op, 0, 1);
}

Value convert_channel_shuffle(const Operation& op) {
  const auto shape = op.shape("self");
  const auto groups = op.integer("groups", 1);
  if (shape.size() != 4 || groups < 1 || shape[1] % groups != 0) {
    op.fail("needs an input N x C x H x W and groups that divide C");
  }
  const Dims split{shape[0], groups, shape[1] / groups, shape[2], shape[3]};
  const auto x = op.reshaped(op.tensor("self"), split);
  return make_tensor(
      op.reshaped(op.emit("Transpose", {x}, {{"perm", Dims{0, 2, 1, 3, 4}}}), shape));
}

namespace {

// Pairs of pads, those of the last dimension first.
Value padded(const Operation& op, const char* mode) {
  const auto given = op.integers(op.has("padding") ? "padding" : "pad");
  const auto dimensions = op.shape("self").size();
  if (given.size() % 2 != 0 || given.size() / 2 > dimensions) {
    op.fail("two pads per dimension were expected");
  }
  Dims pads(2 * dimensions, 0);
  for (std::size_t i = 0; i < given.size() / 2; ++i) {
    pads[dimensions - 1 - i] = given[2 * i];
    pads[2 * dimensions - 1 - i] = given[2 * i + 1];
  }
  const auto value = op.constant(at::scalar_tensor(op.number("value", 0), at::kFloat));
  return make_tensor(
      op.emit("Pad", {op.tensor("self"), op.constant(pads), value}, {{"mode", std::string(mode)}}));
}

}  // namespace

Value convert_pad(const Operation& op) {
  const auto mode = op.text("mode", "constant");
  if (mode == "constant" || mode == "reflect") return padded(op, mode.c_str());
  if (mode == "replicate") return padded(op, "edge");
  if (mode == "circular") return padded(op, "wrap");
  op.fail("mode '" + mode + "' is not known");
}
Value convert_reflection_pad(const Operation& op) { return padded(op, "reflect"); }
Value convert_replication_pad(const Operation& op) { return padded(op, "edge"); }
Value convert_circular_pad(const Operation& op) { return padded(op, "wrap"); }

}  // namespace zsq::models::aten
