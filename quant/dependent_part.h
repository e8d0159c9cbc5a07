// SPDX-License-Identifier: Apache-2.0
// The part of a graph that depends on one node, so that a change there is measured without running
// what comes before it again.
#pragma once
#include <vector>

#include "models/graph.h"

namespace zsq::quant {

// Index = NodeId: whether the node is `start` or depends on it.
inline std::vector<bool> reached_from(const models::Graph& graph, models::NodeId start) {
  std::vector<bool> reached(graph.nodes.size());
  reached[static_cast<std::size_t>(start)] = true;
  for (std::size_t i = static_cast<std::size_t>(start) + 1; i < reached.size(); ++i)
    for (models::NodeId input : graph.nodes[i].inputs)
      if (reached[static_cast<std::size_t>(input)]) reached[i] = true;
  return reached;
}

// Calls visit(id) for each node that is not reached and that a reached one reads.
template <class Visit>
void for_each_border(const models::Graph& graph, const std::vector<bool>& reached,
                     const Visit& visit) {
  for (std::size_t i = 0; i < reached.size(); ++i) {
    if (!reached[i]) continue;
    for (models::NodeId input : graph.nodes[i].inputs)
      if (!reached[static_cast<std::size_t>(input)]) visit(input);
  }
}

}  // namespace zsq::quant
