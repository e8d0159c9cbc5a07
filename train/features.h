// SPDX-License-Identifier: Apache-2.0
// Maps that a student shares with its teacher, and how far they are apart.
#pragma once
#include "models/graph.h"
#include "train/options.h"

namespace zsq::train {

// The nodes of `student` (a student's graph, or a teacher's, fused or not) with the values of the
// teacher's `nodes`; of one that went into a quantizer's node, the quantized value after it.
std::vector<models::NodeId> same_nodes(const models::Graph& student, const models::Graph& teacher,
                                       const std::vector<models::NodeId>& nodes);

// losses/features.h by name. Not for FeatureLoss::none.
at::Tensor feature_term(FeatureLoss term, const std::vector<at::Tensor>& student,
                        const std::vector<at::Tensor>& teacher);

}  // namespace zsq::train
