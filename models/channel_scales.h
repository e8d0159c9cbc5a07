// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/graph.h"

namespace zsq::models {

// A product with one constant per output channel of a layer that nothing else reads (ConvNeXt's
// layer scale) becomes part of the layer: gamma (W x + b) = (gamma W) x + gamma b. Integers then
// run through one operator instead of two, and one rounding is left out.
void fold_channel_scales(Model& model);

}  // namespace zsq::models
