// SPDX-License-Identifier: Apache-2.0
// The walk over a student that the writers of ONNX, LiteRT and ncnn share.
#pragma once
#include <string>
#include <vector>

#include "exporters/code_bounds.h"
#include "exporters/plan.h"
#include "models/execute.h"

namespace zsq::exporters {

// Each node, in the order of the graph, becomes a value of the file: the name of a tensor, or what
// else `Value` says. A node that is absorbed has the value of its input, and a weight none of its
// own.
template <class Value>
class NodeWriter {
 public:
  NodeWriter(const NodeWriter&) = delete;
  NodeWriter& operator=(const NodeWriter&) = delete;

 protected:
  NodeWriter(const quant::Student& student, const Plan& plan)
      : student_(student),
        graph_(student.graph),
        plan_(plan),
        bounds_(code_bounds(student, plan)),
        shapes_(models::infer_shapes(student.graph, student.parameters)),
        values_(student.graph.nodes.size()) {}
  virtual ~NodeWriter() = default;

  // What a node becomes. `operation`: whatever is neither the input, a quantizer nor a layer.
  virtual Value input() = 0;
  virtual Value quantizer(models::NodeId id, const quant::ActivationQuantizer& op) = 0;
  virtual Value layer(models::NodeId id) = 0;
  virtual Value operation(models::NodeId id) = 0;
  // Of a node that comes earlier.
  virtual Value value(models::NodeId id) = 0;

  void write(models::NodeId id) {
    const models::Node& node = graph_[id];
    if (id == graph_.input)
      values_[id] = input();
    else if (plan_.absorbed[id])
      values_[id] = value(node.inputs[0]);
    else if (const auto* op = quant::activation_quantizer(node))
      values_[id] = quantizer(id, *op);
    else if (models::is<models::Conv2d>(node) || models::is<models::Linear>(node))
      values_[id] = layer(id);
    else if (!is_weight(node))
      values_[id] = operation(id);
  }

  // All that a target cannot hold is told at once; nothing where `reason` is empty.
  void refuse(const std::string& node, const std::string& reason) {
    if (!reason.empty()) refused_.push_back({node, reason});
  }
  void require_nothing_refused() const {
    if (!refused_.empty()) throw RefusedByTarget(student_.options.target, refused_);
  }

  const quant::Student& student_;
  const models::Graph& graph_;
  const Plan& plan_;
  std::vector<CodeBounds> bounds_;     // index = NodeId
  std::vector<models::Shape> shapes_;  // index = NodeId
  std::vector<Value> values_;          // index = NodeId
  std::vector<Refusal> refused_;
};

}  // namespace zsq::exporters
