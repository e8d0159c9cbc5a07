// SPDX-License-Identifier: Apache-2.0
#include "models/clips_first.h"

#include <utility>

namespace zsq::models {
namespace {

bool changes_places(const Clip& clip, const Node& node) {
  if (const auto* pad = get_if<Pad>(node))
    return pad->mode != PadMode::constant || (clip.lo <= pad->value && pad->value <= clip.hi);
  return is<MaxPool>(node) || is<Flatten>(node) || is<Reshape>(node) || is<Transpose>(node) ||
         is<Slice>(node) || is<Expand>(node) || is<Resize>(node);
}

// Index = NodeId: whether a layer with weights depends on the node.
std::vector<bool> before_layers(const Graph& graph) {
  std::vector<bool> before(graph.nodes.size());
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    const auto& node = graph.nodes[i];
    if (!before[i] && !is<Conv2d>(node) && !is<Linear>(node)) continue;
    for (const NodeId input : node.inputs) before[static_cast<std::size_t>(input)] = true;
  }
  return before;
}

}  // namespace

void put_clips_first(Model& model) {
  Graph& graph = model.graph;
  const auto readers = graph.consumers();
  const auto before = before_layers(graph);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const auto* clip = get_if<Clip>(graph.nodes[i]);
    if (!clip || !graph.nodes[i].params.empty() || !before[i]) continue;
    // Nodes of one input each, which change places along the way; what reads the last reads it
    // still.
    for (auto behind = static_cast<NodeId>(i);;) {
      const NodeId mover = graph[behind].inputs[0];
      if (readers[static_cast<std::size_t>(mover)].size() != 1 || mover == graph.output ||
          !changes_places(*get_if<Clip>(graph[behind]), graph[mover]) ||
          is<Input>(graph[graph[mover].inputs[0]]))
        break;
      std::swap(graph[mover], graph[behind]);
      std::swap(graph[mover].inputs, graph[behind].inputs);
      behind = mover;
    }
  }
}

}  // namespace zsq::models
