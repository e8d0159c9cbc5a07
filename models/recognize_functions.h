// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/graph.h"

namespace zsq::models {

// Exporters and people write GELU, HardSwish, Mish and the like operator by operator, with factors
// in any order. An expression of elementwise nodes and numbers that is a function of one tensor is
// evaluated on a grid of [-12, 12] and at points
// up to 10^6; where it equals, to 1e-5, one of
//   Gelu, gelu_tanh, HardSwish, Mish, Softplus, Sigmoid, ReLU, LeakyRelu(slope),
//   HardSigmoid(alpha, beta)
// it becomes that node, under the name of its last one. Only if nothing else reads the nodes
// between, and of at most 16 nodes. These and their constants are left without a reader.
void recognize_functions(Model& model);

}  // namespace zsq::models
