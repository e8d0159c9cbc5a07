// SPDX-License-Identifier: Apache-2.0
// Images for a teacher from the source that a recipe names (generate.images.source).
#pragma once
#include "core/observer.h"
#include "recipes/recipe.h"
#include "train/images/make_images.h"

namespace zsq::pipeline {

// A row of the registry of image sources.
struct ImageMaker {
  // What generate.images.steps counts: nothing, the steps of each batch, or those of one generator
  // for all images.
  enum class Steps { none, of_each_batch, of_all };

  ImageSource name;
  train::ImageReport (*make)(const train::ImageJob&, Observer&, const train::ImageSink&);
  Steps steps;
  const char *how, *unit;  // as in "generating 64 images, optimised in 500 steps"
  std::int64_t parts = 1;  // of the images only one in so many takes steps

  // Times that the teacher sees an image, forward and back, to make `images` of them.
  std::int64_t passes(const ImageOptions& options, std::int64_t images) const;
  std::string in_words(const ImageOptions& options) const;
};

const ImageMaker& image_maker(ImageSource name);

bool is_procedural(ImageSource source);  // takes no step: dead leaves, scenes

// How `images` images are made by the recipe. Where the preprocessing is known, pixels are held to
// what an 8-bit image can have; without, to quantize.image_lo and image_hi. Where these are not set
// either, procedural ones are -2 to 2 and others have any value.
train::ImageJob image_job(const models::Model& teacher, const Recipe& recipe, std::int64_t images);

// By image_maker(job.options.source). The labels of procedural images are what the teacher sees.
train::ImageReport make_images(const train::ImageJob& job, Observer& observer,
                               const train::ImageSink& sink);

// All of them, [N, C, H, W] on the CPU.
at::Tensor made_images(const train::ImageJob& job, Observer& observer);

// Scenes for a network with an output of places (boxes, heat maps, classes of pixels), which looks
// for things among others; else dead leaves.
ImageSource procedural_source(const models::Model& teacher);

// Of that source, whatever the recipe's is: images first to first + n - 1 of a seed, on the
// teacher's device, in the range of image_job().
at::Tensor procedural_images(const models::Model& teacher, const Recipe& recipe, std::int64_t first,
                             std::int64_t n, std::uint64_t seed);

}  // namespace zsq::pipeline
