// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/canonicalize.h"

#include <algorithm>

namespace zsq::models::onnx {

NodeId absorb_pad(const Graph& graph, NodeId x, double value, Pads& pads) {
  const auto* pad = get_if<Pad>(graph[x]);
  if (!pad || pad->mode != PadMode::constant || pad->value != value || pad->before.size() != 4)
    return x;
  for (const auto* side : {&pad->before, &pad->after}) {
    if ((*side)[0] != 0 || (*side)[1] != 0 || (*side)[2] < 0 || (*side)[3] < 0) return x;
  }
  pads[0] += pad->before[2];
  pads[1] += pad->before[3];
  pads[2] += pad->after[2];
  pads[3] += pad->after[3];
  return graph[x].inputs[0];
}

namespace {

// One value per index of the last dimension of a tensor of that shape, or one for all.
bool along_last(const at::Tensor& constant, const Shape& shape) {
  const auto dimensions = constant.dim();
  if (dimensions > static_cast<std::int64_t>(shape.size())) return false;
  if (constant.numel() == 1) return true;
  return constant.numel() == shape.back() && constant.size(dimensions - 1) == shape.back();
}

}  // namespace

bool absorb_linear_bias(Call& add) {
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& layer = add.value(i);
    if (layer.node < 0 || !add.is_constant(1 - i)) continue;
    const auto map = map_before_channels_last(add.model().graph, layer.node);
    auto& node = add.model().graph[map < 0 ? layer.node : map];
    const bool is_layer = map < 0 ? is<Linear>(node) : is<Conv2d>(node);
    if (!is_layer || node.params.count("bias") || !add.has_one_use(i)) continue;
    const auto& bias = add.constant(1 - i);
    const auto& shape = add.shape(layer.node);
    if (!along_last(bias, shape)) continue;
    node.params["bias"] =
        add.parameter(node.name, "bias", 1 - i, bias.reshape({-1}).expand({shape.back()}));
    add.bind(layer);
    return true;
  }
  return false;
}

NodeId map_before_channels_last(const Graph& graph, NodeId x) {
  const auto* transpose = get_if<Transpose>(graph[x]);
  const bool channels_last = transpose && transpose->perm == std::vector<std::int64_t>{0, 2, 3, 1};
  return channels_last ? graph[x].inputs[0] : -1;
}

void emit_on_map(Call& call, const std::string& name, Op op, NodeId map,
                 std::map<std::string, std::string> params) {
  const auto y = call.append(name, std::move(op), {map}, std::move(params));
  call.bind({call.append(call.unique_name() + ".channels_last", Transpose{{0, 2, 3, 1}}, {y}), {}});
}

}  // namespace zsq::models::onnx
