// SPDX-License-Identifier: Apache-2.0
// Maps that a student shares with its teacher.
#pragma once
#include "models/graph.h"

namespace zsq::train {

// The nodes of `student` (a student's graph, or a teacher's, fused or not) with the values of the
// teacher's `nodes`; of one that went into a quantizer's node, the quantized value after it.
std::vector<models::NodeId> same_nodes(const models::Graph& student, const models::Graph& teacher,
                                       const std::vector<models::NodeId>& nodes);

}  // namespace zsq::train
