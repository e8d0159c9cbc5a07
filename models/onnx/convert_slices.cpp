// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/arange.h>

#include <algorithm>
#include <numeric>

#include "models/onnx/converters.h"
#include "models/onnx/rearrange.h"

namespace zsq::models::onnx {
namespace {

using Dims = std::vector<std::int64_t>;

std::int64_t channel_axis(const Call& call, std::int64_t axis, NodeId x) {
  axis += axis < 0 ? static_cast<std::int64_t>(call.shape(x).size()) : 0;
  if (axis < 1 || axis >= static_cast<std::int64_t>(call.shape(x).size())) {
    call.fail("the axis is out of range, or is the batch");
  }
  return axis;
}

// Consecutive parts of `x` with the given sizes.
std::vector<NodeId> split(Call& call, NodeId x, std::int64_t axis, const Dims& sizes) {
  const auto total = call.shape(x)[static_cast<std::size_t>(axis)];
  std::vector<NodeId> parts;
  std::int64_t start = 0;
  for (const auto size : sizes) {
    if (size < 1 || size > total - start) break;
    parts.push_back(call.append(call.unique_name(), Slice{axis, start, start + size}, {x}));
    start += size;
  }
  if (std::ranges::find(sizes, 0) != sizes.end()) call.fail("a part is empty");
  if (parts.size() != sizes.size() || start != total) call.contradict("the parts do not add up");
  return parts;
}

// `total` in parts of `size`, the last one with what is left.
Dims equal_parts(std::int64_t total, std::int64_t size) {
  Dims sizes;
  for (std::int64_t start = 0; size > 0 && start < total; start += size) {
    sizes.push_back(std::min(size, total - start));
  }
  return sizes;
}

// One axis of a Slice node, with Python's meaning of the bounds.
struct Range {
  std::int64_t axis, start, end, step;
};

std::vector<Range> slice_ranges(const Call& call, std::int64_t dimensions) {
  const auto starts = call.integers_of("starts", 1).value_or(Dims{});
  const auto ends = call.integers_of("ends", 2).value_or(Dims{});
  Dims axes(starts.size());
  std::iota(axes.begin(), axes.end(), 0);
  axes = call.integers_of("axes", 3).value_or(axes);
  const auto steps = call.has(4) ? call.integers(4) : Dims(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() ||
      steps.size() != starts.size()) {
    call.fail("as many starts, ends, axes and steps were expected");
  }
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const auto axis = axes[i] + (axes[i] < 0 ? dimensions : 0);
    if (axis < 0 || axis >= dimensions) call.fail("an axis is out of range");
    if (steps[i] == 0) call.fail("a step of 0");
    // A longer step picks no more than the first element either.
    const auto step = std::clamp(steps[i], -kMaxExtent, kMaxExtent);
    ranges.push_back({axis, starts[i], ends[i], step});
  }
  return ranges;
}

}  // namespace

at::Tensor fold_slice(const Call& call) {
  auto x = call.constant(0);
  for (const auto& range : slice_ranges(call, x.dim())) {
    const auto size = x.size(range.axis);
    const std::int64_t low = range.step > 0 ? 0 : -1, high = range.step > 0 ? size : size - 1;
    const auto index = [&](std::int64_t at) {
      return std::clamp(at < 0 ? at + size : at, low, high);
    };
    const auto from = index(range.start), to = index(range.end);
    const bool empty = range.step > 0 ? to <= from : to >= from;
    const auto picked =
        empty ? at::arange(0, at::kLong) : at::arange(from, to, range.step, at::kLong);
    x = x.index_select(range.axis, picked);
  }
  return x;
}

namespace {

// As Python's x[start:end:step] of a negative step.
NodeId backwards(Call& call, NodeId x, const Range& range, std::int64_t size) {
  const auto bound = [&](std::int64_t at) {
    return std::clamp(at < 0 ? at + size : at, std::int64_t{-1}, size - 1);
  };
  Dims places;
  for (auto at = bound(range.start); at > bound(range.end); at += range.step) places.push_back(at);
  return pick(call, x, range.axis, places);
}

}  // namespace

void convert_slice(Call& call) {
  auto x = call.activation(0);
  const auto dimensions = static_cast<std::int64_t>(call.shape(x).size());
  for (const auto& range : slice_ranges(call, dimensions)) {
    const bool batch = range.axis == 0;
    const auto size = batch ? kBatch : call.shape(x)[static_cast<std::size_t>(range.axis)];
    const auto index = [&](std::int64_t at) {
      if (batch && call.is_batch(at)) return size;
      return std::clamp(at < 0 ? at + size : at, std::int64_t{0}, size);
    };
    if (range.step < 0 && !batch) {
      x = backwards(call, x, range, size);
      continue;
    }
    const Slice slice{range.axis, index(range.start), index(range.end), range.step};
    if (slice.step < 1) call.fail("the batch cannot be sliced backwards");
    if (slice.start == 0 && slice.end == size && slice.step == 1) continue;
    if (batch) call.fail("the batch cannot be sliced");
    if (slice.start >= slice.end) call.fail("nothing is left");
    x = call.append(call.unique_name(), slice, {x});
  }
  call.bind({x, {}});
}

void convert_split(Call& call) {
  const auto x = call.activation(0);
  const auto axis = channel_axis(call, call.integer("axis", 0), x);
  const auto total = call.shape(x)[static_cast<std::size_t>(axis)];
  const auto outputs = static_cast<std::int64_t>(call.node().outputs.size());
  const auto sizes =
      call.integers_of("split", 1).value_or(equal_parts(total, (total + outputs - 1) / outputs));
  if (static_cast<std::int64_t>(sizes.size()) != outputs) {
    call.fail("as many parts as outputs were expected");
  }
  const auto parts = split(call, x, axis, sizes);
  for (std::size_t i = 0; i < parts.size(); ++i) call.bind({parts[i], {}}, i);
}

void convert_split_to_sequence(Call& call) {
  const auto x = call.activation(0);
  const auto axis = channel_axis(call, call.integer("axis", 0), x);
  const auto total = call.shape(x)[static_cast<std::size_t>(axis)];
  if (!call.has(1)) call.fail("the sizes of the parts were expected as an input");
  const auto given = call.integers(1);
  const bool one_size = call.constant(1).dim() == 0;
  const auto sizes = one_size ? equal_parts(total, given[0]) : given;
  call.bind({-1, {}, {}, split(call, x, axis, sizes)});
}

void convert_sequence_at(Call& call) {
  const auto& sequence = call.value(0).sequence;
  const auto count = static_cast<std::int64_t>(sequence.size());
  auto index = static_cast<std::int64_t>(call.scalar(1));
  index += index < 0 ? count : 0;
  if (index < 0 || index >= count) call.fail("the index is outside the sequence");
  call.bind({sequence[static_cast<std::size_t>(index)], {}});
}

}  // namespace zsq::models::onnx
