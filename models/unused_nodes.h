// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/graph.h"

namespace zsq::models {

// Without the nodes that the output does not depend on.
Graph drop_unused_nodes(const Graph& graph);

// Without the parameters that no node names.
void drop_unused_parameters(Model& model);

}  // namespace zsq::models
