// SPDX-License-Identifier: Apache-2.0
#include "pipeline/sysnoise/graph_variants.h"

#include <algorithm>

#include "models/batch_norm_chain.h"
#include "quant/placement.h"

namespace zsq::pipeline {
namespace {

using models::Graph;
using models::Node;
using models::NodeId;

// Changes nodes of a copy; nothing if none was changed.
template <class Change>
std::optional<Graph> changed(const Graph& graph, Change&& change) {
  Graph result = graph;
  bool any = false;
  for (Node& node : result.nodes) any |= change(node);
  return any ? std::optional(std::move(result)) : std::nullopt;
}

bool exchange_sides(models::Pads& pads) {
  if (pads[0] == pads[2] && pads[1] == pads[3]) return false;
  std::swap(pads[0], pads[2]);
  std::swap(pads[1], pads[3]);
  return true;
}

bool exchange_sides(models::Pad& pad) {
  if (pad.before == pad.after) return false;
  std::swap(pad.before, pad.after);
  return true;
}

class Rounding : public models::CustomOp {
 public:
  explicit Rounding(at::ScalarType type) : type_(type) {}
  std::string kind() const override { return "rounding"; }
  at::Tensor forward(const std::vector<at::Tensor>& inputs,
                     const models::ParameterStore&) const override {
    return inputs.at(0).to(type_).to(inputs[0].scalar_type());
  }

 private:
  at::ScalarType type_;
};

}  // namespace

std::optional<Graph> other_ceil_mode(const Graph& graph) {
  return changed(graph, [](Node& node) {
    auto* pool = std::get_if<models::MaxPool>(&node.op);
    if (!pool || std::max(pool->stride[0], pool->stride[1]) < 2) return false;
    pool->ceil_mode = !pool->ceil_mode;
    return true;
  });
}

std::optional<Graph> other_padding_side(const Graph& graph) {
  return changed(graph, [](Node& node) {
    if (auto* conv = std::get_if<models::Conv2d>(&node.op)) return exchange_sides(conv->pads);
    if (auto* pool = std::get_if<models::MaxPool>(&node.op)) return exchange_sides(pool->pads);
    if (auto* pool = std::get_if<models::AvgPool>(&node.op)) return exchange_sides(pool->pads);
    auto* pad = std::get_if<models::Pad>(&node.op);
    return pad && exchange_sides(*pad);
  });
}

models::Model rounded(const models::Model& model, at::ScalarType type) {
  models::Model result = model;
  result.graph = Graph{};
  result.graph.input_shape = model.graph.input_shape;
  result.graph.signature = model.graph.signature;
  const auto op = std::make_shared<Rounding>(type);
  const auto consumers = model.graph.consumers();
  std::vector<NodeId> moved;
  for (std::size_t i = 0; i < model.graph.nodes.size(); ++i) {
    const auto id = static_cast<NodeId>(i);
    Node node = model.graph[id];
    const bool layer = quant::is_layer(node);
    if (layer)
      for (const auto& [role, name] : node.params)
        result.parameters.set(name, model.parameters.at(name).to(type).to(at::kFloat));
    const bool keeps = models::is<models::Parameter>(node) ||
                       (layer && models::following_batch_norm(model.graph, consumers, id) >= 0);
    for (NodeId& input : node.inputs) input = moved[static_cast<std::size_t>(input)];
    const std::string name = node.name + ".rounded";
    moved.push_back(result.graph.add(std::move(node)));
    if (id == model.graph.input) result.graph.input = moved.back();
    if (!keeps) moved.back() = result.graph.add({name, models::Custom{op}, {moved.back()}});
  }
  result.graph.output = moved[static_cast<std::size_t>(model.graph.output)];
  return result;
}

bool has_quantizers(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, models::is<models::Custom>);
}

}  // namespace zsq::pipeline
