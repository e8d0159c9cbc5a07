// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/reductions.h"

#include <algorithm>
#include <array>

#include "models/onnx/canonicalize.h"

namespace zsq::models::onnx {
namespace {

using Axes = std::vector<std::int64_t>;

NodeId reduce_node(Call& call, ReduceKind kind, NodeId x, const Axes& axes, bool keepdims) {
  const bool pool = kind == ReduceKind::mean && call.shape(x).size() == 4 && axes == Axes{2, 3};
  if (pool) return call.part(GlobalAvgPool{keepdims}, {x});
  return call.part(Reduce{kind, axes, keepdims}, {x});
}

}  // namespace

Axes image_axes(const Call& call, Axes axes, std::size_t dimensions, bool keepdims) {
  const auto count = static_cast<std::int64_t>(dimensions);
  for (auto& axis : axes) {
    axis += axis < 0 ? count : 0;
    if (axis < 0 || axis >= count) call.fail("an axis is out of range");
  }
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  if (!axes.empty() && axes[0] == 0) {
    if (call.fixed_batch() != 1 || !keepdims) call.fail("the batch cannot be an axis");
    axes.erase(axes.begin());
  }
  return axes;
}

NodeId reduce(Call& call, ReduceKind kind, NodeId x, Axes axes, bool keepdims) {
  if (axes.empty()) return x;
  const auto map = map_before_channels_last(call.model().graph, x);
  if (map < 0) return reduce_node(call, kind, x, axes, keepdims);
  constexpr std::array<std::int64_t, 4> kPlaces{0, 2, 3, 1};  // of the dimensions in the map
  Axes of_map, left;
  for (std::int64_t axis = 1; axis < 4; ++axis) {
    const bool reduced = std::count(axes.begin(), axes.end(), axis) > 0;
    (reduced ? of_map : left).push_back(kPlaces[static_cast<std::size_t>(axis)]);
  }
  std::sort(of_map.begin(), of_map.end());
  if (keepdims) {
    const auto y = reduce_node(call, kind, map, of_map, true);
    return call.part(Transpose{{0, 2, 3, 1}}, {y});
  }
  const bool same_order = std::is_sorted(left.begin(), left.end());
  return same_order ? reduce_node(call, kind, map, of_map, false)
                    : reduce_node(call, kind, x, axes, false);
}

NodeId normalized(Call& call, NodeId x, const Axes& axes, double eps, bool centred) {
  if (centred) {
    const auto mean = reduce(call, ReduceKind::mean, x, axes, true);
    x = call.part(Binary{BinaryKind::sub}, {x, mean});
  }
  const auto square = call.part(Elementwise{Function::power, 2}, {x});
  const auto variance = reduce(call, ReduceKind::mean, square, axes, true);
  const auto shifted = call.part(Add{}, {variance, call.made_up(eps)});
  const auto deviation = call.part(Elementwise{Function::sqrt}, {shifted});
  return call.part(Binary{BinaryKind::div}, {x, deviation});
}

NodeId log_softmax(Call& call, NodeId x, std::int64_t axis) {
  const auto largest = reduce(call, ReduceKind::max, x, {axis}, true);
  const auto shifted = call.part(Binary{BinaryKind::sub}, {x, largest});
  const auto powers = call.part(Elementwise{Function::exp}, {shifted});
  const auto sum = reduce(call, ReduceKind::sum, powers, {axis}, true);
  const auto log = call.part(Elementwise{Function::log}, {sum});
  return call.part(Binary{BinaryKind::sub}, {shifted, log});
}

}  // namespace zsq::models::onnx
