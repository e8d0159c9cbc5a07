// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/graph.h"
#include "recipes/recipe.h"

namespace zsq::pipeline {

// The same function with parameters that lose less when activations get fewer than 8 bits, as
// quantize.split_channels and quantize.rotation ask for it (quant/calibration/split_channels.h and
// rotate_bottlenecks.h). The same for the same seed. Error(usage) if the network could be changed
// but takes no colour images.
models::Model reparametrized(models::Model teacher, const Recipe& recipe);

}  // namespace zsq::pipeline
