// SPDX-License-Identifier: Apache-2.0
// The interpreter: runs a Graph with ATen functions, frees each intermediate at its last use.
// Autograd flows through it where the input or a parameter requires grad.
#pragma once
#include "core/error.h"
#include "models/graph.h"
#include "models/precision.h"

namespace zsq::models {

// Outputs of chosen nodes, in the order of `nodes`; they stay part of the autograd graph.
struct Taps {
  std::vector<NodeId> nodes;
  std::vector<at::Tensor> values;
};

// input f32 [N, C, H, W]; returns the output node's value in f32, [N, classes] for a classifier.
// With Precision::bf16 convolutions run in bf16 and pass on bf16 until a global pool or a linear
// layer, which give f32; taps are then bf16 as well.
at::Tensor execute(const Graph& graph, const ParameterStore& parameters, const at::Tensor& input,
                   Taps* taps = nullptr, Precision precision = Precision::fp32);

// The value of one node from those of its inputs.
at::Tensor execute_node(const Node& node, const std::vector<at::Tensor>& inputs,
                        const ParameterStore& parameters, Precision precision = Precision::fp32);

// What the network's file gives for the row of `graph`: for each output its last function applied,
// and its shape in the file (Graph::signature). With a tail, what that reads.
struct FileTensor {
  std::string name;
  at::Tensor value;
};
std::vector<FileTensor> as_file_outputs(const Graph& graph, const at::Tensor& row);
at::Tensor as_file_output(const Graph& graph, const at::Tensor& row);  // the first of them

// The shape of every node's output for a batch of one; index = NodeId. A Custom operator is taken
// to keep the shape of its first input.
using Shape = std::vector<std::int64_t>;
std::vector<Shape> infer_shapes(const Graph& graph, const ParameterStore& parameters);

// Of shapes that contradict each other, so that no runtime computes the node either.
class ShapeError : public Error {
 public:
  explicit ShapeError(const std::string& message) : Error(ErrorCode::unsupported_model, message) {}
};

// The same for one node, from the shapes of its inputs; ShapeError or Error(unsupported_model)
// names the node.
Shape infer_shape(const Node& node, const std::vector<Shape>& inputs,
                  const ParameterStore& parameters);

// The inputs of all BatchNorm nodes, in order: where batch moments are compared with running ones.
std::vector<NodeId> batch_norm_inputs(const Graph& graph);

}  // namespace zsq::models
