// SPDX-License-Identifier: Apache-2.0
// How near the outputs of two networks are.
#pragma once
#include <vector>

#include "pipeline/results.h"

namespace zsq {

// Two networks on the same images. Of logits: KL(a || b), temperature 1, nats per image, and the
// share of the images of which both say the same class; of other outputs as losses/divergence.h
// says.
struct OutputAgreement {
  double divergence = 0, agreement = 0;
  std::vector<OutputResult> outputs_apart;  // each of several, or of one with places
};

}  // namespace zsq
