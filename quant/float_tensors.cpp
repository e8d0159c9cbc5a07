// SPDX-License-Identifier: Apache-2.0
#include "quant/placement.h"
#include "quant/student.h"

namespace zsq::quant {
namespace {

using models::Graph;
using models::NodeId;

// What multiplies or adds, and so runs in integers where its inputs are quantized.
bool computes(const models::Node& node) {
  return is_layer(node) || models::is<models::Add>(node) || models::is<models::Mul>(node);
}

std::string words_for(const models::Node& node) {
  if (models::is<models::Input>(node)) return "network input";
  if (models::is<models::Add>(node)) return "sum without ReLU";
  if (models::is<models::AvgPool>(node) || models::is<models::GlobalAvgPool>(node))
    return "pooled feature";
  if (is_layer(node) || models::is<models::BatchNorm>(node)) return "layer output without ReLU";
  return models::op_name(node.op) + " output";
}

}  // namespace

std::vector<std::string> float_tensors(const Student& student) {
  const Graph& graph = student.graph;
  const auto& rules = target_rules(student.options.target);
  std::set<NodeId> tensors;
  const auto parts = float_parts(graph, rules);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto& node = graph.nodes[i];
    if (!computes(node) || parts[i]) continue;
    for (NodeId id : node.inputs) {
      while (is_pass_through(rules, graph[id])) id = graph[id].inputs[0];
      if (!models::is<models::Custom>(graph[id])) tensors.insert(id);
    }
  }
  std::vector<std::pair<std::string, int>> kinds;  // in order of the network
  for (NodeId id : tensors) {
    const std::string words = words_for(graph[id]);
    auto known = kinds.begin();
    while (known != kinds.end() && known->first != words) ++known;
    if (known == kinds.end()) known = kinds.insert(known, {words, 0});
    ++known->second;
  }
  std::vector<std::string> result;
  for (const auto& [words, count] : kinds)
    result.push_back(count == 1 ? words : words + " (" + std::to_string(count) + " tensors)");
  for (const auto& node : graph.nodes)
    if (is_float_island(node)) result.push_back(node.name + " (" + models::op_name(node.op) + ")");
  return result;
}

}  // namespace zsq::quant
