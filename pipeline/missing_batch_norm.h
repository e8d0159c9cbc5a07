// SPDX-License-Identifier: Apache-2.0
// Networks without BatchNorm statistics: never trained with them, or folded on export.
#pragma once
#include "core/observer.h"
#include "models/graph.h"
#include "recipes/recipe.h"

namespace zsq::pipeline {

// Nothing, if the network has BatchNorm. Otherwise Error(unsupported_model) with what to do, unless
// recipe.model.allow_no_bn: then the means and variances of the convolutions' outputs on
// dead-leaves images take the place of training statistics (models/bn_statistics.h, first form),
// images come from dead leaves, nothing is fine-tuned, and the observer is warned. To be called
// when the recipe's preprocessing is known, which decides the range of the images. Tells the
// model's own warnings as well.
void require_statistics(models::Model& model, Recipe& recipe, Observer& observer);

}  // namespace zsq::pipeline
