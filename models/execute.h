// SPDX-License-Identifier: Apache-2.0
// The interpreter: runs a Graph with ATen functions, frees each intermediate at its last use.
// Autograd flows through it where the input or a parameter requires grad.
#pragma once
#include "models/graph.h"

namespace zsq::models {

// Outputs of chosen nodes, in the order of `nodes`; they stay part of the autograd graph.
struct Taps {
  std::vector<NodeId> nodes;
  std::vector<at::Tensor> values;
};

// input f32 [N, C, H, W]; returns the output node's value, [N, classes] for a classifier.
at::Tensor execute(const Graph& graph, const ParameterStore& parameters, const at::Tensor& input,
                   Taps* taps = nullptr);

// The shape of every node's output for a batch of one; index = NodeId.
std::vector<std::vector<std::int64_t>> infer_shapes(const Graph& graph,
                                                    const ParameterStore& parameters);

// The inputs of all BatchNorm nodes, in order: where batch moments are compared with running ones.
std::vector<NodeId> batch_norm_inputs(const Graph& graph);

}  // namespace zsq::models
