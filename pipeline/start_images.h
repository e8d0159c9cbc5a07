// SPDX-License-Identifier: Apache-2.0
// The images that blocks are reconstructed on.
#pragma once
#include "core/observer.h"
#include "recipes/recipe.h"
#include "train/make_images.h"

namespace zsq::pipeline {

// How `images` images are made by the recipe. With a preset, pixels are held to what an 8-bit image
// can have; Error(usage) where the network takes no colour images.
train::ImageJob image_job(const models::Model& teacher, const Recipe& recipe, std::int64_t images);

// On the teacher's device. The student never learns on what is held out.
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
