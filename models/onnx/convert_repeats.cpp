// SPDX-License-Identifier: Apache-2.0
// Operators that pick parts of an activation by index, or repeat it.
#include <ATen/ops/arange.h>

#include <algorithm>

#include "models/onnx/broadcast.h"
#include "models/onnx/converters.h"
#include "models/onnx/rearrange.h"

namespace zsq::models::onnx {
namespace {

using Dims = std::vector<std::int64_t>;

constexpr std::int64_t kMaxParts = 4096;  // of one node

// PyTorch's as_strided, with which its exporter writes a mean over a map in channels_last: all
// elements in a row, of which each is taken once, in order.
void gather_row(Call& call, NodeId whole) {
  const auto& indices = call.constant(1);
  const auto sizes = indices.sizes().vec();
  const auto& shape = call.shape(whole);
  std::int64_t elements = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) elements *= shape[i];
  const bool all = indices.dim() > 1 && call.is_batch(indices.size(0)) &&
                   indices.numel() / indices.size(0) == elements && call.integer("axis", 0) == 0;
  if (!all || !indices.flatten().equal(at::arange(indices.numel(), indices.options())))
    call.fail("takes other elements than all in their order");
  reshape_to(call, whole, {sizes.begin() + 1, sizes.end()});
}

}  // namespace

NodeId pick(Call& call, NodeId x, std::int64_t axis, const Dims& places) {
  if (places.empty() || std::ssize(places) > kMaxParts)
    call.fail("picks nothing, or too many places");
  const auto size = static_cast<std::size_t>(call.shape(x)[static_cast<std::size_t>(axis)]);
  std::vector<NodeId> parts;
  for (std::size_t i = 0; i < places.size();) {
    auto end = i + 1;
    while (end < places.size() && places[end] == places[end - 1] + 1) ++end;
    const bool all = end - i == size;
    parts.push_back(all ? x : call.part(Slice{axis, places[i], places[end - 1] + 1}, {x}));
    i = end;
  }
  return parts.size() == 1 ? parts[0] : call.part(Concat{axis}, parts);
}

void convert_gather(Call& call) {
  if (!call.is_constant(1)) call.fail("the indices must be constants");
  if (const auto& row = call.value(0); row.flattened) return gather_row(call, *row.flattened);
  const auto x = call.activation(0);
  const Shape shape = call.shape(x);
  const auto count = static_cast<std::int64_t>(shape.size());
  auto axis = call.integer("axis", 0);
  axis += axis < 0 ? count : 0;
  if (axis < 1 || axis >= count) call.fail("the axis is out of range, or is the batch");
  const auto size = shape[static_cast<std::size_t>(axis)];
  auto places = call.integers(1);
  for (auto& place : places) {
    place += place < 0 ? size : 0;
    if (place < 0 || place >= size) call.fail("an index is out of range");
  }
  Dims dims(shape.begin() + 1, shape.begin() + axis);
  const auto indices = call.constant(1).sizes();
  dims.insert(dims.end(), indices.begin(), indices.end());
  dims.insert(dims.end(), shape.begin() + axis + 1, shape.end());
  reshape_to(call, pick(call, x, axis, places), dims);
}

// Where the batch is not first: models/onnx/permuted.cpp.
void convert_gather_nd(Call& call) {
  call.fail("takes single values of the images; only whole rows of one dimension are known");
}

// Both shapes broadcast, so a 1 in the asked one leaves the dimension as it is.
void convert_expand(Call& call) {
  const auto x = call.activation(0);
  const Shape shape = call.shape(x);
  const auto asked = call.integers(1);
  if (asked.size() > shape.size()) call.fail("would put dimensions before the batch");
  Dims dims(shape.begin() + 1, shape.end());
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const auto axis = shape.size() - asked.size() + i;
    if (axis == 0) {
      if (asked[i] != 1 && !call.is_batch(asked[i])) call.fail("the batch cannot be repeated");
      continue;
    }
    auto& size = dims[axis - 1];
    if (size != 1 && asked[i] != 1 && size != asked[i])
      call.contradict("the shapes do not broadcast");
    if (asked[i] < 1 || asked[i] > kMaxExtent * kMaxExtent) call.fail("asks for an empty tensor");
    size = std::max(size, asked[i]);
  }
  if (dims == Dims(shape.begin() + 1, shape.end())) return call.bind({x, {}});
  call.emit(Expand{dims}, {x});
}

void convert_tile(Call& call) {
  auto x = call.activation(0);
  const Shape shape = call.shape(x);
  const auto repeats = call.integers(1);
  if (repeats.size() != shape.size()) call.fail("one number of repeats per dimension was expected");
  if (repeats[0] != 1) call.fail("the batch cannot be repeated");
  for (std::size_t axis = 1; axis < shape.size(); ++axis) {
    const auto count = repeats[axis];
    if (count < 1 || count > kMaxExtent) call.fail("a number of repeats is not plausible");
    if (count == 1) continue;
    if (shape[axis] == 1) {
      Dims dims(call.shape(x).begin() + 1, call.shape(x).end());
      dims[axis - 1] = count;
      x = call.part(Expand{dims}, {x});
      continue;
    }
    if (count > kMaxParts) call.fail("repeats too often");
    x = call.part(Concat{static_cast<std::int64_t>(axis)},
                  std::vector<NodeId>(static_cast<std::size_t>(count), x));
  }
  call.bind({x, {}});
}

}  // namespace zsq::models::onnx
