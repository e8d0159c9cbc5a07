// SPDX-License-Identifier: Apache-2.0
#include "models/unused_nodes.h"

#include <set>

namespace zsq::models {

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
  result.signature = graph.signature;
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

void drop_unused_parameters(Model& model) {
  std::set<std::string> used;
  for (const Node& node : model.graph.nodes) {
    if (is<Custom>(node)) return;  // it looks parameters up by names of its own
    for (const auto& [role, name] : node.params) used.insert(name);
  }
  ParameterStore kept;
  for (const auto& name : model.parameters.names())
    if (used.count(name) > 0) kept.set(name, model.parameters.at(name));
  model.parameters = std::move(kept);
}

}  // namespace zsq::models
