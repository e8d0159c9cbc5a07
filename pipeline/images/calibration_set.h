// SPDX-License-Identifier: Apache-2.0
// The images that ranges are calibrated on, weights rounded and blocks reconstructed.
#pragma once
#include "core/observer.h"
#include "models/graph.h"
#include "recipes/recipe.h"

namespace zsq::pipeline {

struct BankSplit {
  at::Tensor learn, held_out;
};

// A bank in drawn order, of which process.agreement_images are held out, a quarter at most.
BankSplit split_bank(const at::Tensor& bank, const Recipe& recipe);

struct WantedImages {
  std::int64_t images = 0;
  std::int64_t views = 1;  // of each image: itself first and, after all of these, crops and flips
  double seconds = 0;      // what making them may take, by fewer steps; 0: any
};
// f32 [images * views, C, H, W] on the teacher's device: the first of `bank`, or made by
// recipe.images where `bank` is undefined.
at::Tensor calibration_set(const models::Model& teacher, const Recipe& recipe,
                           const at::Tensor& bank, const WantedImages& wanted, Observer& observer);

}  // namespace zsq::pipeline
