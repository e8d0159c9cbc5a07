// SPDX-License-Identifier: Apache-2.0
#include "models/fold_affine.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>

#include "models/execute.h"
#include "models/unused_nodes.h"

namespace zsq::models {
namespace {

// Of a product or sum with a constant: the other input, and the constant as [C] or undefined.
struct WithConstant {
  NodeId of = -1;
  at::Tensor constant;
};

class Folder {
 public:
  explicit Folder(Model& model)
      : model_(model),
        consumers_(model.graph.consumers()),
        shapes_(infer_shapes(model.graph, model.parameters)) {}

  // The convolution that takes the place of this sum; -1: none.
  NodeId fold(const Node& sum) {
    const WithConstant shift = with_constant<Add>(sum);
    if (shift.of < 0 || !only_reader(shift.of)) return -1;
    const WithConstant scale = with_constant<Mul>(model_.graph[shift.of]);
    const NodeId layer = scale.of >= 0 ? scale.of : shift.of;
    Node& node = model_.graph[layer];
    if (!is<Conv2d>(node) || node.inputs.size() != 1 || !only_reader(layer)) return -1;
    auto weight = model_.parameters.at(node.params.at("weight"));
    auto bias = node.params.contains("bias") ? model_.parameters.at(node.params.at("bias"))
                                             : at::zeros({weight.size(0)}, weight.options());
    if (scale.of >= 0) {
      weight = weight * scale.constant.view({-1, 1, 1, 1});
      bias = bias * scale.constant;
    }
    // Others may share the parameters.
    const std::string stem = node.name + (scale.of >= 0 ? ".fused_bn" : ".shifted");
    set(node, "bias", stem + ".bias", bias + shift.constant);
    if (scale.of >= 0) set(node, "weight", stem + ".weight", weight);
    return layer;
  }

 private:
  bool only_reader(NodeId id) const {
    return consumers_[static_cast<std::size_t>(id)].size() == 1 && id != model_.graph.output;
  }

  template <class Op>
  WithConstant with_constant(const Node& node) const {
    if (!is<Op>(node)) return {};
    for (std::size_t i = 0; i < 2; ++i) {
      const Node& other = model_.graph[node.inputs[1 - i]];
      const Shape& shape = shapes_[static_cast<std::size_t>(node.inputs[i])];
      if (!is<Parameter>(other) || shape.size() != 4) continue;
      const at::Tensor& value = model_.parameters.at(other.params.at("value"));
      const auto channels = shape[1];
      const bool alone = value.numel() == 1 && value.dim() <= 4;
      const bool along = value.numel() == channels && value.dim() >= 3 && value.dim() <= 4 &&
                         value.size(value.dim() - 3) == channels;
      if (alone || along)
        return {node.inputs[i], value.reshape({-1}).expand({channels}).contiguous()};
    }
    return {};
  }

  void set(Node& node, const char* role, const std::string& name, const at::Tensor& value) {
    model_.parameters.set(name, value.contiguous());
    node.params[role] = name;
  }

  Model& model_;
  std::vector<std::vector<NodeId>> consumers_;
  std::vector<Shape> shapes_;
};

}  // namespace

void fold_affine_pairs(Model& model) {
  Folder folder(model);
  const auto nodes = model.graph.nodes.size();
  std::vector<NodeId> stands_for;  // index = NodeId: the node that is read in its place
  bool any = false;
  for (std::size_t i = 0; i < nodes; ++i) {
    const auto id = static_cast<NodeId>(i);
    const NodeId layer = folder.fold(model.graph[id]);
    for (NodeId& input : model.graph[id].inputs)
      input = stands_for[static_cast<std::size_t>(input)];
    any |= layer >= 0;
    stands_for.push_back(layer >= 0 ? layer : id);
  }
  if (!any) return;
  model.graph.output = stands_for[static_cast<std::size_t>(model.graph.output)];
  model.graph = drop_unused_nodes(model.graph);
  drop_unused_parameters(model);
}

}  // namespace zsq::models
