// SPDX-License-Identifier: Apache-2.0
#include "quant/data_free/linear_groups.h"

#include <ATen/TensorOperators.h>

#include <algorithm>

namespace zsq::quant {
namespace {

using models::Graph;
using models::NodeId;

class Groups {
 public:
  explicit Groups(const models::Model& model)
      : model_(model),
        consumers_(model.graph.consumers()),
        uses_(parameter_uses(model.graph)),
        group_of_(model.graph.nodes.size(), -1) {}

  std::vector<LinearGroup> find() && {
    const Graph& graph = model_.graph;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      const auto id = static_cast<NodeId>(i);
      const bool add = models::is<models::Add>(graph[id]);
      if (!add && !models::is<models::BatchNorm>(graph[id])) continue;
      group_of_[i] = static_cast<int>(groups_.size());
      groups_.push_back({{id}, {}, {}, {}});
      closed_.push_back(id != graph.output);
      if (!add) continue;
      for (NodeId input : graph[id].inputs)
        if (group_of_[input] < 0)
          closed_[group_of_[i]] = false;
        else
          join(input, group_of_[i]);
    }
    std::vector<LinearGroup> found;
    for (std::size_t i = 0; i < groups_.size(); ++i)
      if (closed_[i] && find_members(groups_[i])) found.push_back(std::move(groups_[i]));
    return found;
  }

 private:
  void join(NodeId tensor, int to) {
    const int from = group_of_[tensor];
    if (from == to) return;
    auto& moved = groups_[from].tensors;
    for (NodeId id : moved) group_of_[id] = to;
    groups_[to].tensors.insert(groups_[to].tensors.end(), moved.begin(), moved.end());
    closed_[to] = closed_[to] && closed_[from];
    moved.clear();
  }

  // False where something reads the group that cannot undo a transformation, or nothing does.
  bool find_members(LinearGroup& group) const {
    const Graph& graph = model_.graph;
    for (NodeId id : group.tensors) {
      if (models::is<models::BatchNorm>(graph[id])) {
        if (!is_own(graph[id], "gamma", uses_) || !is_own(graph[id], "beta", uses_)) return false;
        group.norms.push_back(id);
      }
      for (NodeId reader : consumers_[id]) {
        if (models::is<models::Add>(graph[reader])) continue;
        if (!can_undo_scaling(model_, reader, uses_)) return false;
        group.layers.push_back(reader);
        group.read.push_back(id);
      }
    }
    return !group.layers.empty();
  }

  const models::Model& model_;
  std::vector<std::vector<NodeId>> consumers_;
  ParameterUses uses_;
  std::vector<int> group_of_;
  std::vector<LinearGroup> groups_;
  std::vector<bool> closed_;
};

}  // namespace

ParameterUses parameter_uses(const Graph& graph) {
  ParameterUses uses;
  for (const auto& node : graph.nodes)
    for (const auto& [role, name] : node.params) ++uses[name];
  return uses;
}

bool is_own(const models::Node& node, const char* role, const ParameterUses& uses) {
  const auto found = node.params.find(role);
  return found != node.params.end() && uses.at(found->second) == 1;
}

void set_own(models::Model& model, NodeId id, const char* role, const at::Tensor& value) {
  models::Node& node = model.graph[id];
  node.params[role] = node.name + "." + role;
  model.parameters.set(node.params[role], value);
}

bool is_depthwise(const models::Model& model, NodeId convolution) {
  const auto& node = model.graph[convolution];
  const auto groups = models::get_if<models::Conv2d>(node)->groups;
  const auto& weight = model.parameters.at(node.params.at("weight"));
  return groups > 1 && groups == weight.size(0) && weight.size(1) == 1;
}

bool can_undo_scaling(const models::Model& model, NodeId reader, const ParameterUses& uses) {
  const auto* conv = models::get_if<models::Conv2d>(model.graph[reader]);
  return conv && is_own(model.graph[reader], "weight", uses) &&
         (conv->groups == 1 || is_depthwise(model, reader));
}

std::vector<LinearGroup> linear_groups(const models::Model& model) { return Groups(model).find(); }

ImpliedMoments implied_moments(const models::Model& model, NodeId tensor) {
  const auto& node = model.graph[tensor];
  if (models::is<models::BatchNorm>(node))
    return {model.parameters.at(node.params.at("beta")),
            model.parameters.at(node.params.at("gamma")).square()};
  const auto a = implied_moments(model, node.inputs[0]), b = implied_moments(model, node.inputs[1]);
  return {a.mean + b.mean, a.variance + b.variance};
}

}  // namespace zsq::quant
