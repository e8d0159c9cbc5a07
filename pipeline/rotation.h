// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/graph.h"
#include "recipes/recipe.h"

namespace zsq::pipeline {

// The same function, with linear bottlenecks rotated where quantize.rotation and the activations'
// bits ask for it (quant/calibration/rotate_bottlenecks.h). The same for the same seed.
// Error(usage) if the network has bottlenecks but takes no colour images.
models::Model rotated_where_asked(models::Model teacher, const Recipe& recipe);

}  // namespace zsq::pipeline
