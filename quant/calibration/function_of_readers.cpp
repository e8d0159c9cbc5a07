// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "models/execute.h"
#include "quant/calibration/ranges.h"

namespace zsq::quant {
namespace {

using models::Graph, models::Node, models::NodeId;

bool is_function(const Node& node) {
  if (!node.params.empty()) return false;  // one function per channel
  return models::is<models::Sigmoid>(node) || models::is<models::HardSigmoid>(node) ||
         models::is<models::HardSwish>(node) || models::is<models::Gelu>(node) ||
         models::is<models::LeakyRelu>(node) || models::is<models::Elementwise>(node);
}

// Those that read the tensor, quantizers passed through.
std::vector<NodeId> readers(const Graph& graph, const std::vector<std::vector<NodeId>>& consumers,
                            NodeId id) {
  std::vector<NodeId> found;
  for (const NodeId consumer : consumers[static_cast<std::size_t>(id)]) {
    if (!activation_quantizer(graph[consumer])) {
      found.push_back(consumer);
      continue;
    }
    const auto behind = readers(graph, consumers, consumer);
    found.insert(found.end(), behind.begin(), behind.end());
  }
  std::ranges::sort(found);
  const auto repeated = std::ranges::unique(found);
  found.erase(repeated.begin(), repeated.end());
  return found;
}

at::Tensor value_of(const Node& node, const std::vector<at::Tensor>& inputs) {
  static const models::ParameterStore none;
  return models::execute_node(node, inputs, none);
}

}  // namespace

FunctionOfValues function_of_readers(const Graph& graph, NodeId source) {
  if (source == graph.output) return {};
  const auto consumers = graph.consumers();
  const auto of_source = readers(graph, consumers, source);
  if (of_source.empty() || of_source.size() > 2 || !is_function(graph[of_source[0]])) return {};
  const Node function = graph[of_source[0]];
  if (of_source.size() == 1)
    return [function](const at::Tensor& x) { return value_of(function, {x}); };
  const bool is_gate = models::is<models::Mul>(graph[of_source[1]]) &&
                       readers(graph, consumers, of_source[0]) == std::vector{of_source[1]};
  if (!is_gate || of_source[0] == graph.output) return {};
  return [function](const at::Tensor& x) { return x.mul(value_of(function, {x})); };
}

}  // namespace zsq::quant
