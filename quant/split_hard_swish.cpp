// SPDX-License-Identifier: Apache-2.0
#include "quant/split_hard_swish.h"

namespace zsq::quant {

using models::Node;
using models::NodeId;

models::Graph split_hard_swish(const models::Graph& graph) {
  models::Graph split;
  split.input_shape = graph.input_shape;
  split.signature = graph.signature;
  std::vector<NodeId> ids;
  for (Node node : graph.nodes) {
    for (NodeId& input : node.inputs) input = ids[static_cast<std::size_t>(input)];
    if (models::is<models::HardSwish>(node)) {
      const NodeId x = node.inputs[0];
      node.inputs.push_back(
          split.add({node.name + ".gate", models::HardSigmoid{1.0 / 6, 0.5}, {x}, node.params}));
      node.params.clear();
      node.op = models::Mul{};
    }
    ids.push_back(split.add(std::move(node)));
  }
  split.input = ids[static_cast<std::size_t>(graph.input)];
  split.output = ids[static_cast<std::size_t>(graph.output)];
  return split;
}

}  // namespace zsq::quant
