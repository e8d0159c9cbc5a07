// SPDX-License-Identifier: Apache-2.0
#include "models/execute.h"
#include "quant/calibration/ranges.h"
#include "quant/data_free/sources.h"

namespace zsq::quant {
namespace {

using models::Graph, models::Node, models::NodeId;

// The same for all channels. A clip ends in the range of its quantizer.
bool is_one_function(const Node& node) {
  return is_function(node) && node.params.empty() && !models::is<models::Clip>(node);
}

at::Tensor value_of(const Node& node, const std::vector<at::Tensor>& inputs) {
  static const models::ParameterStore none;
  return models::execute_node(node, inputs, none);
}

}  // namespace

FunctionOfValues function_of_readers(const Graph& graph, NodeId source) {
  if (source == graph.output) return {};
  const auto consumers = graph.consumers();
  const auto of_source = readers_of(graph, consumers, source);
  if (of_source.empty() || of_source.size() > 2 || !is_one_function(graph[of_source[0]])) return {};
  const Node function = graph[of_source[0]];
  if (of_source.size() == 1)
    return [function](const at::Tensor& x) { return value_of(function, {x}); };
  const bool is_gate = models::is<models::Mul>(graph[of_source[1]]) &&
                       readers_of(graph, consumers, of_source[0]) == std::vector{of_source[1]};
  if (!is_gate || of_source[0] == graph.output) return {};
  return [function](const at::Tensor& x) { return x.mul(value_of(function, {x})); };
}

}  // namespace zsq::quant
