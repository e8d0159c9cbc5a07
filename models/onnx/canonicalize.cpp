// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/canonicalize.h"

#include <algorithm>

namespace zsq::models::onnx {

NodeId absorb_pad(const Graph& graph, NodeId x, double value, Pads& pads) {
  const auto* pad = get_if<Pad>(graph[x]);
  if (!pad || pad->value != value || pad->before.size() != 4) return x;
  for (const auto* side : {&pad->before, &pad->after}) {
    if ((*side)[0] != 0 || (*side)[1] != 0 || (*side)[2] < 0 || (*side)[3] < 0) return x;
  }
  pads[0] += pad->before[2];
  pads[1] += pad->before[3];
  pads[2] += pad->after[2];
  pads[3] += pad->after[3];
  return graph[x].inputs[0];
}

bool absorb_linear_bias(Call& add) {
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& layer = add.value(i);
    if (layer.node < 0 || !add.is_constant(1 - i)) continue;
    auto& node = add.model().graph[layer.node];
    if (!is<Linear>(node) || node.params.count("bias") || !add.has_one_use(i)) continue;
    const auto& bias = add.constant(1 - i);
    if (bias.numel() != add.shape(layer.node).back()) continue;
    node.params["bias"] = add.parameter(node.name, "bias", 1 - i, bias.reshape({-1}));
    add.bind(layer);
    return true;
  }
  return false;
}

Graph drop_unused_nodes(const Graph& graph) {
  std::vector<bool> used(graph.nodes.size(), false);
  used[static_cast<std::size_t>(graph.output)] = true;
  used[static_cast<std::size_t>(graph.input)] = true;
  for (auto id = graph.nodes.size(); id-- > 0;) {
    if (!used[id]) continue;
    for (const auto input : graph.nodes[id].inputs) used[static_cast<std::size_t>(input)] = true;
  }
  Graph result;
  result.input_shape = graph.input_shape;
  std::vector<NodeId> moved(graph.nodes.size(), -1);
  for (std::size_t id = 0; id < graph.nodes.size(); ++id) {
    if (!used[id]) continue;
    auto node = graph.nodes[id];
    for (auto& input : node.inputs) input = moved[static_cast<std::size_t>(input)];
    moved[id] = result.add(std::move(node));
  }
  result.input = moved[static_cast<std::size_t>(graph.input)];
  result.output = moved[static_cast<std::size_t>(graph.output)];
  return result;
}

}  // namespace zsq::models::onnx
