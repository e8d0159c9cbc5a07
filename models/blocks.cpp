// SPDX-License-Identifier: Apache-2.0
#include "models/blocks.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"

namespace zsq::models {
namespace {

bool is_layer(const Node& node) { return is<Conv2d>(node) || is<Linear>(node); }

bool acts_on_each_value(const Node& node) {
  return is<BatchNorm>(node) || is<Clip>(node) || is<LeakyRelu>(node) || is<Sigmoid>(node) ||
         is<HardSigmoid>(node) || is<HardSwish>(node) || is<Gelu>(node) || is<Elementwise>(node) ||
         is<PRelu>(node) || is<Add>(node) || is<Mul>(node) || is<Binary>(node);
}

// What stands between two neighbouring nodes that all ways go through, the latter included.
using Segment = std::vector<NodeId>;

// Nodes on ways from the input to the output, in order.
std::vector<NodeId> live_nodes(const Graph& graph) {
  const auto n = graph.nodes.size();
  std::vector<bool> fed(n), read(n);
  fed[graph.input] = read[graph.output] = true;
  for (std::size_t id = 0; id < n; ++id)
    for (const NodeId input : graph.nodes[id].inputs)
      if (fed[input]) fed[id] = true;
  for (std::size_t id = n; id-- > 0;)
    if (read[id])
      for (const NodeId input : graph.nodes[id].inputs) read[input] = true;
  std::vector<NodeId> live;
  for (std::size_t id = 0; id < n; ++id)
    if (fed[id] && read[id]) live.push_back(static_cast<NodeId>(id));
  return live;
}

std::vector<Segment> segments_of(const Graph& graph) {
  const auto live = live_nodes(graph);
  // For each live node the last live one that reads it.
  std::vector<NodeId> last(graph.nodes.size(), -1);
  for (const NodeId id : live)
    for (const NodeId input : graph[id].inputs) last[input] = id;
  std::vector<Segment> segments;
  Segment open;
  NodeId reach = -1;  // of all before
  for (const NodeId id : live) {
    if (id != graph.input) open.push_back(id);
    if (reach <= id && !open.empty()) {
      segments.push_back(std::move(open));
      open = {};
    }
    reach = std::max(reach, last[id]);
  }
  return segments;
}

class Finder {
 public:
  Finder(const Graph& graph, const ParameterStore& parameters)
      : graph_(graph), parameters_(parameters) {}

  std::vector<Block> find() {
    for (const Segment& segment : segments_of(graph_)) take(segment);
    if (!open_.layers.empty())
      units_.push_back(open_);
    else if (!units_.empty())
      units_.back().block.exit = open_.block.exit;
    join_inverted_residuals();
    std::vector<Block> blocks;
    for (const Unit& unit : units_) blocks.push_back(unit.block);
    return blocks;
  }

 private:
  struct Unit {
    Block block;
    std::vector<NodeId> layers;
    bool gate = false;  // ways part and meet again in a Mul
  };

  void take(const Segment& segment) {
    const bool follows = std::all_of(segment.begin(), segment.end(),
                                     [&](NodeId id) { return acts_on_each_value(graph_[id]); });
    const NodeId exit = segment.back();
    if (!open_.layers.empty() && !follows) {
      const NodeId entry = open_.block.exit;
      units_.push_back(std::move(open_));
      open_ = {{entry, entry}, {}};
    }
    open_.block.exit = exit;
    if (segment.size() > 1 && !follows) {
      open_.block.residual |= is<Add>(graph_[exit]);
      open_.gate |= is<Mul>(graph_[exit]);
    }
    for (const NodeId id : segment)
      if (is_layer(graph_[id])) open_.layers.push_back(id);
  }

  // The weight of the one convolution of a unit; undefined if it is something else.
  at::Tensor weight_of_lone_convolution(const Unit& unit) const {
    if (unit.layers.size() != 1 || unit.block.residual || unit.gate) return {};
    const Node& layer = graph_[unit.layers.front()];
    if (!is<Conv2d>(layer)) return {};
    const Node& holder = layer.inputs.size() > 1 ? graph_[layer.inputs[1]] : layer;
    const auto found = holder.params.find(layer.inputs.size() > 1 ? "value" : "weight");
    return found == holder.params.end() ? at::Tensor() : parameters_.at(found->second);
  }

  bool is_depthwise(const Unit& unit) const {
    const auto weight = weight_of_lone_convolution(unit);
    if (!weight.defined()) return false;
    const auto groups = get_if<Conv2d>(graph_[unit.layers.front()])->groups;
    return groups > 1 && weight.size(1) == 1;
  }

  bool is_pointwise(const Unit& unit) const {
    const auto weight = weight_of_lone_convolution(unit);
    return weight.defined() && weight.size(2) == 1 && weight.size(3) == 1 && weight.size(1) > 1;
  }

  void join_inverted_residuals() {
    std::vector<Unit> joined;
    bool free = false;  // the last one of `joined` is a single unit
    for (std::size_t i = 0; i < units_.size(); ++i) {
      if (!is_depthwise(units_[i])) {
        joined.push_back(units_[i]);
        free = true;
        continue;
      }
      std::size_t end = i + 1;
      if (end < units_.size() && units_[end].gate) ++end;
      if (end < units_.size() && is_pointwise(units_[end])) ++end;
      if (free && is_pointwise(joined.back()))
        joined.back().block.exit = units_[end - 1].block.exit;
      else
        joined.push_back({{units_[i].block.entry, units_[end - 1].block.exit}, {}});
      i = end - 1;
      free = false;
    }
    units_ = std::move(joined);
  }

  const Graph& graph_;
  const ParameterStore& parameters_;
  std::vector<Unit> units_;
  Unit open_{{graph_.input, graph_.input}, {}};
};

}  // namespace

std::vector<Block> find_blocks(const Graph& graph, const ParameterStore& parameters) {
  return Finder(graph, parameters).find();
}

std::vector<NodeId> feature_nodes(const Graph& graph, const ParameterStore& parameters) {
  const auto blocks = find_blocks(graph, parameters);
  const auto shapes = infer_shapes(graph, parameters);
  const auto is_map = [&](const Block& block) { return shapes[block.exit].size() == 4; };
  std::vector<NodeId> nodes;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (!is_map(blocks[i])) continue;
    const bool last = i + 1 == blocks.size() || !is_map(blocks[i + 1]) ||
                      shapes[blocks[i + 1].exit][2] < shapes[blocks[i].exit][2];
    if (blocks[i].residual || last) nodes.push_back(blocks[i].exit);
  }
  return nodes;
}

Graph cut_out(const Graph& graph, NodeId entry, NodeId exit, const Shape& entry_shape) {
  std::vector<bool> needed(graph.nodes.size());
  needed[exit] = true;
  for (NodeId id = exit; id >= 0; --id) {
    if (!needed[id] || id == entry) continue;
    if (is<Input>(graph[id]))
      throw Error(ErrorCode::internal,
                  "'" + graph[exit].name + "' depends on more than '" + graph[entry].name + "'");
    for (const NodeId input : graph[id].inputs) needed[input] = true;
  }
  const auto values = std::accumulate(entry_shape.begin() + 1, entry_shape.end(), std::int64_t{1},
                                      std::multiplies<>());
  Graph part;
  std::vector<NodeId> ids(graph.nodes.size(), -1);
  part.input = ids[entry] = part.add({graph[entry].name, Input{}, {}});
  if (entry_shape.size() == 4) {
    part.input_shape = {entry_shape[1], entry_shape[2], entry_shape[3]};
  } else {
    part.input_shape = {values, 1, 1};
    ids[entry] = part.add({graph[entry].name + ".as_it_was",
                           Reshape{{entry_shape.begin() + 1, entry_shape.end()}},
                           {part.input}});
  }
  for (NodeId id = 0; id <= exit; ++id) {
    if (!needed[id] || id == entry) continue;
    Node node = graph[id];
    for (NodeId& input : node.inputs) input = ids[input];
    ids[id] = part.add(std::move(node));
  }
  part.output = ids[exit];
  return part;
}

at::Tensor as_images(const at::Tensor& value) {
  return value.dim() == 4 ? value : value.reshape({value.size(0), -1, 1, 1});
}

}  // namespace zsq::models
