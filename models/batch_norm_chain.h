// SPDX-License-Identifier: Apache-2.0
// Runs of nodes that one pass over memory can compute.
#pragma once
#include "models/graph.h"

namespace zsq::models {

// BatchNorm [-> Add with a residual] [-> Clip]; -1 if there is none of the kind.
struct BatchNormChain {
  NodeId batch_norm = -1, add = -1, residual = -1, clip = -1;
};

// The longest one that ends in `last`. Nodes before the last are read by nothing else.
BatchNormChain batch_norm_chain(const Graph& graph,
                                const std::vector<std::vector<NodeId>>& consumers, NodeId last);

// The BatchNorm that folds into `layer`: its only consumer. -1: there is none.
NodeId following_batch_norm(const Graph& graph, const std::vector<std::vector<NodeId>>& consumers,
                            NodeId layer);

}  // namespace zsq::models
