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

// What process.agreement_images leaves to hold out: a batch of generate.images at most.
std::int64_t to_hold_out(const Recipe& recipe);

struct WantedImages {
  std::int64_t images = 0;  // in `learn`, times `views`: the images themselves first
  std::int64_t views = 1;
  std::int64_t held_out = 0;  // besides; a bank's are those that split_bank() held out
  double seconds = 0;         // what making them may take, by fewer steps; 0: any
};
// From `bank`, or made where `bank.learn` is undefined.
StartImages start_images(const models::Model& teacher, const Recipe& recipe,
                         const StartImages& bank, const WantedImages& wanted, Observer& observer);

}  // namespace zsq::pipeline
