// SPDX-License-Identifier: Apache-2.0
// Images without their high frequencies, in which synthetic images have more than photographs
// (SynQ, Kim et al. 2603.18423).
#pragma once
#include "train/step.h"

namespace zsq::train {

// The batch with its images filtered (generator/augment.h), and the teacher's logits on them
// and its values at `features`. Targets stay. The batch as it is where cutoff is 0.
Batch low_pass(const Batch& batch, double cutoff, const models::Model& teacher,
               const std::vector<models::NodeId>& features, Precision precision);

}  // namespace zsq::train
