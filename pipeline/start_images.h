// SPDX-License-Identifier: Apache-2.0
// The images that blocks are reconstructed on, and weights rounded.
#pragma once
#include "core/observer.h"
#include "models/graph.h"
#include "recipes/recipe.h"

namespace zsq::pipeline {

struct StartImages {
  at::Tensor learn, held_out;
};

// A bank in drawn order, at most a quarter of it and a batch held out; none where
// process.agreement_images asks for none.
StartImages split_bank(const at::Tensor& bank, const Recipe& recipe);

// From `bank`, or made where `bank.learn` is undefined: reconstruct.images and, held out, up to a
// batch more. `learn` has reconstruct.views of each, the images themselves first. `seconds`: what
// making them may take, by fewer steps; 0: any.
StartImages start_images(const models::Model& teacher, const Recipe& recipe,
                         const StartImages& bank, double seconds, Observer& observer);

}  // namespace zsq::pipeline
