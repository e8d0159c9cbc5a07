// SPDX-License-Identifier: Apache-2.0
// Genie-D (arXiv 2212.04780): for each batch of images a small generator of its own
// (generator/genie.h), whose weights and latents are optimised together. Its prior keeps the images
// smoother than free pixels. Prints nothing; reports to an Observer.
#pragma once
#include "train/images/make_images.h"

namespace zsq::train {

// optimise_images() of latents that start from N(0, 1), by Adam(0.9, 0.999) at options.lr and its
// schedule, and of fresh weights, by Adam(0.9, 0.999) at
//   options.generator_lr x 0.95^floor(40 step / steps),
// which is the published 0.95 every 100 of 4000 steps. Pixels beyond what a pixel can be are
// clamped in the forward pass. Published settings: the recipe `genie`.
ImageReport make_genie_images(const ImageJob& job, Observer& observer, const ImageSink& sink);

// The factor 0.95^floor(40 step / steps).
double genie_rate_factor(std::int64_t step, std::int64_t steps);

}  // namespace zsq::train
