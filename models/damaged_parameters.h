// SPDX-License-Identifier: Apache-2.0
// Parameters that no trained network has.
#pragma once
#include "models/graph.h"

namespace zsq::models {

// Error(bad_input) names the layer, the parameter, what was found and in how many places:
//   NaN in any parameter; an infinite weight, bias or BatchNorm statistic (bounds and constants may
//   be infinite); a BatchNorm variance below zero, which the sum of squares that it is cannot be.
// All that are damaged are counted, the first is named.
void refuse_damaged_parameters(const Model& model);

}  // namespace zsq::models
