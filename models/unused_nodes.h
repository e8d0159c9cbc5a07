// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/graph.h"

namespace zsq::models {

// Without the nodes that the output does not depend on.
Graph drop_unused_nodes(const Graph& graph);

// Without the parameters that no node names. A Custom operator holds names of its own, so that a
// graph with one keeps all.
void drop_unused_parameters(Model& model);

}  // namespace zsq::models
