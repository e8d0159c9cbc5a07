// SPDX-License-Identifier: Apache-2.0
// Images between the layout of a network's file and that of the graph, which is [N, C, H, W].
// What comes out goes back with as_file_output() (models/execute.h).
#pragma once
#include "models/graph.h"

namespace zsq::models {

// [N, H, W, C] -> [N, C, H, W] if the file takes channels last and the tensor has four dimensions;
// [N, C, L] -> [N, C, 1, L] if it takes signals; [C, H, W] -> [1, C, H, W] if it takes one image;
// else the tensor itself.
at::Tensor from_file_input(const Graph& graph, const at::Tensor& input);

// The part of each output of a row [N, K], [N, shape...] as its file has it; in their order.
std::vector<at::Tensor> parts_of(const OutputRow& outputs, const at::Tensor& row);

}  // namespace zsq::models
