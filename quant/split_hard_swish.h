// SPDX-License-Identifier: Apache-2.0
// HardSwish as the product it is, x * HardSigmoid(x), for targets that run the factors in integers
// but not the whole. The product keeps the node's name, the other factor is "<name>.gate". Weights
// and values stay as they are.
#pragma once
#include "models/graph.h"

namespace zsq::quant {

models::Graph split_hard_swish(const models::Graph& graph);

}  // namespace zsq::quant
