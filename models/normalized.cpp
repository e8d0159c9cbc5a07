// SPDX-License-Identifier: Apache-2.0
#include "models/normalized.h"

namespace zsq::models {
namespace {

// The reduction between x and a length, searched from the length; -1 if x is not reached, or its
// sign remains.
NodeId reduction_between(const Graph& graph, NodeId length, NodeId x) {
  constexpr int kSteps = 12;
  NodeId reduced = -1;
  bool positive = false;
  for (int step = 0; step < kSteps && length != x; ++step) {
    const Node& node = graph[length];
    const auto* reduce = get_if<Reduce>(node);
    if (reduce && (reduce->kind == ReduceKind::sum || reduce->kind == ReduceKind::mean))
      reduced = length;
    if (const auto* function = get_if<Elementwise>(node))
      positive = positive || function->function == Function::sqrt ||
                 function->function == Function::power || function->function == Function::abs;
    if (node.inputs.empty()) return -1;
    const bool constant_first = node.inputs.size() > 1 && is<Parameter>(graph[node.inputs[0]]);
    length = node.inputs[constant_first ? 1 : 0];
  }
  return length == x && positive ? reduced : -1;
}

}  // namespace

std::optional<Normalized> find_normalized(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  const auto* binary = get_if<Binary>(node);
  const bool product = is<Mul>(node);
  if (!product && (!binary || binary->kind != BinaryKind::div)) return {};
  for (const std::size_t x : {0, 1}) {
    if (x == 1 && !product) break;
    const auto reduce = reduction_between(graph, node.inputs[1 - x], node.inputs[x]);
    if (reduce >= 0) return Normalized{x, reduce};
  }
  return {};
}

}  // namespace zsq::models
