// SPDX-License-Identifier: Apache-2.0
#include "models/graph.h"

#include "core/error.h"
#include "models/elementwise.h"

namespace zsq::models {
namespace {

struct OpNames {
  std::string operator()(const Input&) const { return "Input"; }
  std::string operator()(const Parameter&) const { return "Parameter"; }
  std::string operator()(const Conv2d&) const { return "Conv2d"; }
  std::string operator()(const Linear&) const { return "Linear"; }
  std::string operator()(const BatchNorm&) const { return "BatchNorm"; }
  std::string operator()(const Clip&) const { return "Clip"; }
  std::string operator()(const LeakyRelu&) const { return "LeakyRelu"; }
  std::string operator()(const Sigmoid&) const { return "Sigmoid"; }
  std::string operator()(const HardSigmoid&) const { return "HardSigmoid"; }
  std::string operator()(const HardSwish&) const { return "HardSwish"; }
  std::string operator()(const Gelu&) const { return "Gelu"; }
  std::string operator()(const Elementwise& op) const {
    return std::string(info(op.function).name);
  }
  std::string operator()(const PRelu&) const { return "PRelu"; }
  std::string operator()(const LayerNorm&) const { return "LayerNorm"; }
  std::string operator()(const Add&) const { return "Add"; }
  std::string operator()(const Mul&) const { return "Mul"; }
  std::string operator()(const Binary& op) const {
    static constexpr const char* kNames[]{"Sub", "Div", "Max", "Min", "Pow"};
    return kNames[static_cast<std::size_t>(op.kind)];
  }
  std::string operator()(const MatMul&) const { return "MatMul"; }
  std::string operator()(const Reduce& op) const {
    static constexpr const char* kNames[]{"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin",
                                          "ReduceProd"};
    return kNames[static_cast<std::size_t>(op.kind)];
  }
  std::string operator()(const Concat&) const { return "Concat"; }
  std::string operator()(const MaxPool&) const { return "MaxPool"; }
  std::string operator()(const AvgPool&) const { return "AvgPool"; }
  std::string operator()(const GlobalAvgPool&) const { return "GlobalAvgPool"; }
  std::string operator()(const Flatten&) const { return "Flatten"; }
  std::string operator()(const Reshape&) const { return "Reshape"; }
  std::string operator()(const Transpose&) const { return "Transpose"; }
  std::string operator()(const Slice&) const { return "Slice"; }
  std::string operator()(const Pad&) const { return "Pad"; }
  std::string operator()(const Expand&) const { return "Expand"; }
  std::string operator()(const Resize&) const { return "Resize"; }
  std::string operator()(const Interpolate&) const { return "Interpolate"; }
  std::string operator()(const Softmax&) const { return "Softmax"; }
  std::string operator()(const Custom& custom) const { return custom.op->kind(); }
};

}  // namespace

std::string op_name(const Op& op) { return std::visit(OpNames{}, op); }

NodeId Graph::add(Node node) {
  const auto id = static_cast<NodeId>(nodes.size());
  for (const auto input : node.inputs) {
    if (input < 0 || input >= id) {
      throw Error(ErrorCode::internal, "node '" + node.name + "' reads node " +
                                           std::to_string(input) +
                                           ", which does not come before it");
    }
  }
  for (const auto& other : nodes) {
    if (other.name == node.name) {
      throw Error(ErrorCode::internal, "two nodes are named '" + node.name + "'");
    }
  }
  nodes.push_back(std::move(node));
  return id;
}

NodeId Graph::id_of(const std::string& name) const {
  for (std::size_t id = 0; id < nodes.size(); ++id) {
    if (nodes[id].name == name) return static_cast<NodeId>(id);
  }
  throw Error(ErrorCode::internal, "the graph has no node '" + name + "'");
}

std::vector<std::vector<NodeId>> Graph::consumers() const {
  std::vector<std::vector<NodeId>> result(nodes.size());
  for (std::size_t id = 0; id < nodes.size(); ++id) {
    for (const auto input : nodes[id].inputs) {
      result[static_cast<std::size_t>(input)].push_back(static_cast<NodeId>(id));
    }
  }
  return result;
}

}  // namespace zsq::models
