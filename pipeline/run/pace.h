// SPDX-License-Identifier: Apache-2.0
// How fast the teacher is on this machine, from which a plan estimates its stages.
#pragma once
#include "pipeline/run/prepare.h"

namespace zsq::pipeline {

// Seconds of the teacher's forward pass for one image.
struct Pace {
  double in_fp32 = 0;
  double of_images = 0;    // in generate.images.precision
  double of_learning = 0;  // in finetune.precision, which block reconstruction has too
  double of_batches = 0;   // the same in batches of finetune.batch_size, if a pass is short
};

// The fastest of a few passes each, which other work on the machine disturbs least. A pass of
// eight images in less than `short_pass` seconds takes as long as its operators take to start,
// above all on a GPU, and tells little of a batch.
Pace measure_pace(const Run& run, double short_pass = 0.02);

// To make so many images by generate.images.
double seconds_of_images(const Recipe& recipe, std::int64_t images, const Pace& pace);

}  // namespace zsq::pipeline
