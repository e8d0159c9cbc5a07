// SPDX-License-Identifier: Apache-2.0
// Pad in every mode; a negative pad crops, which is a Slice of its own here.
#include <algorithm>
#include <numeric>

#include "models/onnx/converters.h"

namespace zsq::models::onnx {
namespace {

using Dims = std::vector<std::int64_t>;

PadMode pad_mode(const Call& call) {
  const auto mode = call.text("mode", "constant");
  if (mode == "constant") return PadMode::constant;
  if (mode == "reflect") return PadMode::reflect;
  if (mode == "edge") return PadMode::edge;
  if (mode == "wrap") return PadMode::wrap;
  call.fail("mode '" + mode + "' is not known; constant, reflect, edge or wrap was expected");
}

// Pads of every dimension, from those of the axes that the node names.
Pad read_pads(const Call& call, std::size_t dimensions) {
  const auto pads = call.integers_of("pads", 1).value_or(Dims{});
  Dims axes(dimensions);
  std::iota(axes.begin(), axes.end(), 0);
  if (call.has(3)) axes = call.integers(3);
  const auto plausible = [](std::int64_t pad) { return pad >= -kMaxExtent && pad <= kMaxExtent; };
  if (pads.size() != 2 * axes.size() || !std::all_of(pads.begin(), pads.end(), plausible)) {
    call.fail("two pads per axis, none larger than an image, were expected");
  }
  Pad pad{Dims(dimensions, 0), Dims(dimensions, 0)};
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(
        axes[i] + (axes[i] < 0 ? static_cast<std::int64_t>(dimensions) : 0));
    if (axis >= dimensions) call.fail("an axis is out of range");
    pad.before[axis] = pads[i];
    pad.after[axis] = pads[i + axes.size()];
  }
  if (pad.before[0] != 0 || pad.after[0] != 0) call.fail("the batch cannot be padded");
  return pad;
}

NodeId crop(Call& call, NodeId x, Pad& pad) {
  for (std::size_t axis = 1; axis < pad.before.size(); ++axis) {
    auto &before = pad.before[axis], &after = pad.after[axis];
    if (before >= 0 && after >= 0) continue;
    const auto size = call.shape(x)[axis];
    const Slice slice{static_cast<std::int64_t>(axis), std::max<std::int64_t>(0, -before),
                      size - std::max<std::int64_t>(0, -after)};
    if (slice.start >= slice.end) call.fail("nothing is left of its input");
    x = call.append(call.unique_name(), slice, {x});
    before = std::max<std::int64_t>(0, before);
    after = std::max<std::int64_t>(0, after);
  }
  return x;
}

// Values of the map stand for those around it: runtimes know this of height and width.
void check_mode(const Call& call, const Shape& x, const Pad& pad) {
  if (x.size() != 4 || pad.before[1] != 0 || pad.after[1] != 0)
    call.fail("mode '" + call.text("mode", "") + "' is known for height and width of a map only");
  for (std::size_t axis = 2; axis < 4; ++axis) {
    const auto largest = std::max(pad.before[axis], pad.after[axis]);
    const auto bound = pad.mode == PadMode::edge      ? kMaxExtent
                       : pad.mode == PadMode::reflect ? x[axis] - 1
                                                      : x[axis];
    if (largest > bound) {
      call.fail("a pad of " + std::to_string(largest) + " goes beyond a side of " +
                std::to_string(x[axis]) + " pixels in mode '" + call.text("mode", "") + "'");
    }
  }
}

}  // namespace

void convert_pad(Call& call) {
  auto x = call.activation(0);
  auto pad = read_pads(call, call.shape(x).size());
  pad.mode = pad_mode(call);
  if (pad.mode == PadMode::constant)
    pad.value = call.has(2) ? call.scalar(2) : call.number("value", 0);
  x = crop(call, x, pad);
  const Dims none(pad.before.size(), 0);
  if (pad.before == none && pad.after == none) return call.bind({x, {}});
  if (pad.mode != PadMode::constant) check_mode(call, call.shape(x), pad);
  call.emit(pad, {x});
}

}  // namespace zsq::models::onnx
