// SPDX-License-Identifier: Apache-2.0
#include "models/channel_scales.h"

#include <ATen/TensorOperators.h>

#include <utility>

#include "models/execute.h"
#include "models/unused_nodes.h"

namespace zsq::models {
namespace {

// One number per output channel of the layer, or one for all; undefined: something else. The
// channels are dimension 1 of what a convolution gives, the last of what a linear layer gives.
// `shape`: of that output.
at::Tensor per_channel(const at::Tensor& value, const Node& layer, const Shape& shape) {
  const auto rank = static_cast<std::int64_t>(shape.size());
  if (value.dim() > rank) return {};  // the product has more dimensions
  const auto axis = is<Conv2d>(layer) ? 1 : rank - 1;
  const auto channels = shape[static_cast<std::size_t>(axis)];
  if (value.numel() == 1) return value.reshape({1}).expand({channels});
  const auto place = axis - (rank - value.dim());  // of the channels in the constant
  const bool fits = place >= 0 && value.size(place) == channels && value.numel() == channels;
  return fits ? value.reshape({channels}) : at::Tensor();
}

std::map<std::string, int> count_uses(const Graph& graph) {
  std::map<std::string, int> uses;
  for (const Node& node : graph.nodes)
    for (const auto& [role, name] : node.params) ++uses[name];
  return uses;
}

// gamma times the layer's parameters, under a new name where another layer shares them.
void scale(Node& layer, const at::Tensor& gamma, const std::map<std::string, int>& uses,
           ParameterStore& parameters) {
  for (auto& [role, name] : layer.params) {
    const at::Tensor old = parameters.at(name);
    std::vector<std::int64_t> shape(static_cast<std::size_t>(old.dim()), 1);
    shape[0] = -1;
    if (uses.at(name) > 1) name = layer.name + ".scaled." + role;
    parameters.set(name, old * gamma.reshape(shape));
  }
}

// The layer and the factor of a Mul that can be folded; -1: it cannot.
std::pair<NodeId, at::Tensor> foldable(const Model& model, const Node& mul,
                                       const std::vector<std::vector<NodeId>>& consumers,
                                       const std::vector<Shape>& shapes) {
  if (!is<Mul>(mul)) return {-1, {}};
  for (std::size_t i = 0; i < 2; ++i) {
    const NodeId layer = mul.inputs[i], factor = mul.inputs[1 - i];
    const Node& node = model.graph[layer];
    const bool owns_weight = (is<Conv2d>(node) || is<Linear>(node)) && node.inputs.size() == 1;
    if (!owns_weight || !is<Parameter>(model.graph[factor])) continue;
    if (consumers[static_cast<std::size_t>(layer)].size() != 1) continue;
    const auto& value = model.parameters.at(model.graph[factor].params.at("value"));
    if (auto gamma = per_channel(value, node, shapes[static_cast<std::size_t>(layer)]);
        gamma.defined())
      return {layer, std::move(gamma)};
  }
  return {-1, {}};
}

}  // namespace

void fold_channel_scales(Model& model) {
  const auto consumers = model.graph.consumers();
  const auto shapes = infer_shapes(model.graph, model.parameters);
  const auto uses = count_uses(model.graph);
  std::vector<NodeId> stands_for;  // index = NodeId: the node that is read in its place
  for (std::size_t i = 0; i < model.graph.nodes.size(); ++i) {
    const auto id = static_cast<NodeId>(i);
    Node& node = model.graph[id];
    const auto [layer, gamma] = foldable(model, node, consumers, shapes);
    for (NodeId& input : node.inputs) input = stands_for[static_cast<std::size_t>(input)];
    if (layer >= 0) scale(model.graph[layer], gamma, uses, model.parameters);
    stands_for.push_back(layer >= 0 ? layer : id);
  }
  const auto nodes = model.graph.nodes.size();
  model.graph.output = stands_for[static_cast<std::size_t>(model.graph.output)];
  model.graph = drop_unused_nodes(model.graph);
  if (model.graph.nodes.size() < nodes) drop_unused_parameters(model);
}

}  // namespace zsq::models
