// SPDX-License-Identifier: Apache-2.0
// Images optimised against a teacher, as a recipe says (generate.images).
#pragma once
#include "core/observer.h"
#include "recipes/recipe.h"
#include "train/make_images.h"

namespace zsq::pipeline {

// How `images` images are made by the recipe. With a preset, pixels are held to what an 8-bit image
// can have; Error(usage) where the network takes no colour images.
train::ImageJob image_job(const models::Model& teacher, const Recipe& recipe, std::int64_t images);

// All of them, [N, C, H, W] on the CPU.
at::Tensor made_images(const train::ImageJob& job, Observer& observer);

}  // namespace zsq::pipeline
