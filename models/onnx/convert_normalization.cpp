// SPDX-License-Identifier: Apache-2.0
// Normalisations of one image: over the channels of a map by a node of its own, others composed of
// general nodes. Source: the ONNX specification of each operator.
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <numeric>

#include "models/onnx/broadcast.h"
#include "models/onnx/canonicalize.h"
#include "models/onnx/converters.h"
#include "models/onnx/reductions.h"

namespace zsq::models::onnx {
namespace {

using Axes = std::vector<std::int64_t>;

std::int64_t dimensions_of(const Call& call, NodeId x) {
  return static_cast<std::int64_t>(call.shape(x).size());
}

Axes axes_from(std::int64_t first, std::int64_t dimensions) {
  Axes axes(static_cast<std::size_t>(std::max<std::int64_t>(0, dimensions - first)));
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

// The axis of the node, counted from the front; not the batch.
std::int64_t inner_axis(const Call& call, std::int64_t otherwise, std::int64_t dimensions) {
  auto axis = call.integer("axis", otherwise);
  axis += axis < 0 ? dimensions : 0;
  if (axis < 1 || axis >= dimensions) call.fail("the axis is out of range, or is the batch");
  return axis;
}

// gamma x + beta with constants [C, 1, ...]: one number per channel of [N, C, ...].
void emit_affine_of_channels(Call& call, NodeId x) {
  const auto& shape = call.shape(x);
  Shape per_channel(shape.size() - 1, 1);
  per_channel[0] = shape[1];
  for (const std::size_t input : {1, 2}) {
    const auto& constant = call.constant(input);
    if (constant.numel() != shape[1]) call.fail("one number per channel was expected");
    const auto operand = call.operand(input, constant.reshape(per_channel));
    x = input == 1 ? call.part(Mul{}, {x, operand}) : call.part(Add{}, {x, operand});
  }
  call.bind({x, {}});
}

// The same with constants that broadcast to x from the right; the second may be absent.
void emit_affine(Call& call, NodeId x) {
  for (const std::size_t input : {1, 2}) {
    if (!call.has(input)) continue;
    const auto rank = call.shape(x).size();
    if (static_cast<std::size_t>(call.constant(input).dim()) > rank)
      call.fail("a scale or bias has more dimensions than the input");
    const auto operand = call.operand(input, without_batch_rows(call, call.constant(input), rank));
    x = input == 1 ? call.part(Mul{}, {x, operand}) : call.part(Add{}, {x, operand});
  }
  call.bind({x, {}});
}

}  // namespace

void convert_layer_normalization(Call& call) {
  const auto x = call.activation(0);
  const auto& shape = call.shape(x);
  const auto dimensions = dimensions_of(call, x);
  const auto axis = inner_axis(call, -1, dimensions);
  const double eps = call.number("epsilon", 1e-5);
  const auto channels = shape.back();
  const auto beta = call.has(2) ? call.constant(2) : at::zeros({channels});
  const auto map = map_before_channels_last(call.model().graph, x);
  const bool per_channel =
      axis == dimensions - 1 && call.constant(1).numel() == channels && beta.numel() == channels;
  if (!per_channel || (map < 0 && dimensions != 2))
    return emit_affine(call, normalized(call, x, axes_from(axis, dimensions), eps, true));
  const auto name = call.layer_name(1);
  std::map<std::string, std::string> params;
  params["gamma"] = call.parameter(name, "gamma", 1, call.constant(1).reshape({-1}));
  params["beta"] = call.parameter(name, "beta", call.has(2) ? 2 : 1, beta.reshape({-1}));
  if (map >= 0) return emit_on_map(call, name, LayerNorm{eps}, map, params);
  call.bind({call.append(name, LayerNorm{eps, false}, {x}, params), {}});
}

void convert_rms_normalization(Call& call) {
  const auto x = call.activation(0);
  const auto dimensions = dimensions_of(call, x);
  const auto axes = axes_from(inner_axis(call, -1, dimensions), dimensions);
  emit_affine(call, normalized(call, x, axes, call.number("epsilon", 1e-5), false));
}

// Of each channel of each image.
void convert_instance_normalization(Call& call) {
  const auto x = call.activation(0);
  const auto dimensions = dimensions_of(call, x);
  if (dimensions < 3) call.fail("needs an input N x C x H x W");
  emit_affine_of_channels(
      call, normalized(call, x, axes_from(2, dimensions), call.number("epsilon", 1e-5), true));
}

// Of groups of channels; up to opset 20 scale and bias are of groups as well.
void convert_group_normalization(Call& call) {
  const auto x = call.activation(0);
  const Shape shape = call.shape(x);
  const auto groups = call.integer("num_groups", 0);
  if (shape.size() < 2 || groups < 1 || shape[1] % groups != 0)
    call.contradict("num_groups must divide the number of channels");
  const double eps = call.number("epsilon", 1e-5);
  const Shape dims(shape.begin() + 1, shape.end());
  auto y = call.part(Reshape{{groups, -1}}, {x});
  y = normalized(call, y, {2}, eps, true);
  if (call.opset() >= 21) return emit_affine_of_channels(call, call.part(Reshape{dims}, {y}));
  emit_affine_of_channels(call, y);
  call.emit(Reshape{dims}, {call.result()});
}

// x / (sum |x|^p)^(1/p) over one axis
void convert_lp_normalization(Call& call) {
  const auto x = call.activation(0);
  const auto axis = inner_axis(call, -1, dimensions_of(call, x));
  const auto p = call.integer("p", 2);
  if (p != 1 && p != 2) call.fail("p must be 1 or 2");
  const auto powers =
      call.part(p == 1 ? Elementwise{Function::abs} : Elementwise{Function::power, 2}, {x});
  auto norm = reduce(call, ReduceKind::sum, powers, {axis}, true);
  if (p == 2) norm = call.part(Elementwise{Function::sqrt}, {norm});
  // Zeros stay zeros, as runtimes have it.
  norm = call.part(Clip{1e-30F}, {norm});
  call.emit(Binary{BinaryKind::div}, {x, norm});
}

}  // namespace zsq::models::onnx
