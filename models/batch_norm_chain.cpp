// SPDX-License-Identifier: Apache-2.0
#include "models/batch_norm_chain.h"

namespace zsq::models {

BatchNormChain batch_norm_chain(const Graph& graph,
                                const std::vector<std::vector<NodeId>>& consumers, NodeId last) {
  const auto may_take = [&](NodeId id) {
    return id == last ||
           (consumers[static_cast<std::size_t>(id)].size() == 1 && id != graph.output);
  };
  BatchNormChain chain;
  NodeId id = last;
  if (is<Clip>(graph[id]) && graph[id].params.empty()) {  // one interval for all channels
    chain.clip = id;
    id = graph[id].inputs[0];
  }
  if (is<Add>(graph[id]) && may_take(id)) {
    const auto& inputs = graph[id].inputs;
    const auto normed = [&](NodeId input) {
      return is<BatchNorm>(graph[input]) && may_take(input);
    };
    if (!normed(inputs[0]) && !normed(inputs[1])) return {};
    const bool first = normed(inputs[0]);
    chain.add = id;
    chain.residual = inputs[first ? 1 : 0];
    id = inputs[first ? 0 : 1];
  }
  if (!is<BatchNorm>(graph[id]) || !may_take(id)) return {};
  chain.batch_norm = id;
  return chain;
}

NodeId following_batch_norm(const Graph& graph, const std::vector<std::vector<NodeId>>& consumers,
                            NodeId layer) {
  const auto& users = consumers[static_cast<std::size_t>(layer)];
  const bool folds = users.size() == 1 && layer != graph.output && is<BatchNorm>(graph[users[0]]);
  return folds ? users[0] : -1;
}

}  // namespace zsq::models
