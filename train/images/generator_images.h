// SPDX-License-Identifier: Apache-2.0
// Images of a generator that is trained for them alone, without a student (Qimera 2111.02625). A
// share of them is superposed: they lie between classes. Prints nothing; reports to an Observer.
#pragma once
#include "train/images/make_images.h"

namespace zsq::train {

// Trains a generator by job.generator for job.options.steps iterations of job.options.batch_size
// images on
//   CE(T(G(z)), targets) + lambda L_BNS,   lambda = job.generator.bns_weight,
// then makes job.images with it, held to what a pixel can be. A label is the first of an image's
// classes. An image depends on (seed, its number, batch_size) only. Error(stopped) if the observer
// asks for it; Error(unsupported_model) if the teacher does not end in a linear layer.
ImageReport make_generator_images(const ImageJob& job, Observer& observer, const ImageSink& sink);

}  // namespace zsq::train
