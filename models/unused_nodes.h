// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/graph.h"

namespace zsq::models {

// Without the nodes that the output does not depend on.
Graph drop_unused_nodes(const Graph& graph);

}  // namespace zsq::models
