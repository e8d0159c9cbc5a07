// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/graph.h"
#include "recipes/recipe.h"

namespace zsq::pipeline {

// The same function with parameters that lose less when they are quantized, which a student is
// made from: by all rewrites of quant/rewrites/ that the recipe asks for. Activations of fewer than
// 8 bits get split channels and rotated bottlenecks (quantize.split_channels and
// quantize.rotation), by images that are the same for the same seed; then quant::equalize().
// Error(usage) if these images are needed and the network takes no colour images.
models::Model rewritten(models::Model network, const Recipe& recipe);

// Which of them change the network.
bool splits_channels(const models::Model& network, const Recipe& recipe);
bool rotates_bottlenecks(const models::Model& network, const Recipe& recipe);

}  // namespace zsq::pipeline
