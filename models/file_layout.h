// SPDX-License-Identifier: Apache-2.0
// Images between the layout of a network's file and that of the graph, which is [N, C, H, W].
// What comes out goes back with as_file_output() (models/execute.h).
#pragma once
#include "models/graph.h"

namespace zsq::models {

// [N, H, W, C] -> [N, C, H, W] if the file takes channels last and the tensor has four dimensions;
// [N, C, L] -> [N, C, 1, L] if it takes signals; else the tensor itself.
at::Tensor from_file_input(const Graph& graph, const at::Tensor& input);

}  // namespace zsq::models
