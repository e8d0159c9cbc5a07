// SPDX-License-Identifier: Apache-2.0
// Networks without BatchNorm statistics: never trained with them, or folded on export.
#pragma once
#include <string>
#include <vector>

#include "core/observer.h"
#include "models/graph.h"
#include "recipes/recipe.h"

namespace zsq::pipeline {

// Where the network has BatchNorm after each of its convolutions, nothing; where some were folded
// into convolutions on export, a note of how many. Without any, or where more convolutions have
// none than have one, the means and variances of the convolutions' outputs on procedural images
// take the place of training statistics (models/bn_statistics.h, first form), images are
// procedural, nothing is fine-tuned, and the observer is told; with recipe.model.require_bn
// Error(unsupported_model) says what to do. To be called when the recipe's preprocessing is known,
// which decides the range of the images. Tells the model's own warnings as well, and gives all of
// that for the results of a run.
std::vector<std::string> require_statistics(models::Model& model, Recipe& recipe,
                                            Observer& observer);

}  // namespace zsq::pipeline
