// SPDX-License-Identifier: Apache-2.0
// The images that blocks are reconstructed on.
#pragma once
#include "core/observer.h"
#include "models/graph.h"
#include "recipes/recipe.h"

namespace zsq::pipeline {

struct StartImages {
  at::Tensor learn, held_out;
};

// From `bank`, in drawn order, or made where it is undefined: reconstruct.images and, where
// process.agreement_images asks for any, up to a batch more that are held out. `learn` has
// reconstruct.views of each, the images themselves first. `seconds`: what making them may take, by
// fewer steps; 0: any.
StartImages start_images(const models::Model& teacher, const Recipe& recipe, const at::Tensor& bank,
                         double seconds, Observer& observer);

}  // namespace zsq::pipeline
