// SPDX-License-Identifier: Apache-2.0
#include "quant/data_free/sources.h"

#include <algorithm>

#include "quant/data_free/distribution.h"
#include "quant/student.h"

namespace zsq::quant {

using models::Graph;
using models::Node;
using models::NodeId;

bool is_function(const Node& node) {
  return models::is<models::Clip>(node) || models::is<models::LeakyRelu>(node) ||
         models::is<models::Sigmoid>(node) || models::is<models::HardSigmoid>(node) ||
         models::is<models::HardSwish>(node) || models::is<models::Gelu>(node) ||
         models::is<models::Elementwise>(node) || models::is<models::PRelu>(node);
}

bool is_constant(const Graph& graph, NodeId id) {
  while (models::is<models::Custom>(graph[id])) id = graph[id].inputs[0];
  return models::is<models::Parameter>(graph[id]);
}

std::vector<NodeId> find_sources(const Graph& graph) {
  std::vector<NodeId> sources;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    sources.push_back(static_cast<NodeId>(i));
    const bool pair = models::is<models::Add>(node) || models::is<models::Mul>(node) ||
                      models::is<models::Binary>(node);
    if (!pair && !is_function(node) && !models::is<models::Custom>(node)) continue;
    std::vector<NodeId> read;
    for (NodeId input : node.inputs)
      if (!is_constant(graph, input)) read.push_back(sources[input]);
    if (!read.empty() && std::equal(read.begin() + 1, read.end(), read.begin()))
      sources.back() = read[0];
  }
  return sources;
}

std::vector<NodeId> readers_of(const models::Graph& graph,
                               const std::vector<std::vector<NodeId>>& consumers, NodeId id) {
  std::vector<NodeId> found;
  for (const NodeId consumer : consumers[static_cast<std::size_t>(id)]) {
    if (!activation_quantizer(graph[consumer])) {
      found.push_back(consumer);
      continue;
    }
    const auto behind = readers_of(graph, consumers, consumer);
    found.insert(found.end(), behind.begin(), behind.end());
  }
  std::ranges::sort(found);
  const auto repeated = std::ranges::unique(found);
  found.erase(repeated.begin(), repeated.end());
  return found;
}

at::Tensor constant_rows(const at::Tensor& value) {
  const bool of_one_image = value.dim() > 0 && value.size(0) == 1;
  const auto rows = of_one_image ? value : value.unsqueeze(0);
  auto sizes = rows.sizes().vec();
  sizes[0] = distribution::kNodes;
  return rows.expand(sizes);
}

}  // namespace zsq::quant
