// SPDX-License-Identifier: Apache-2.0
#include "pipeline/run/pace.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <limits>

#include "models/execute.h"
#include "pipeline/images/image_job.h"

namespace zsq::pipeline {
namespace {

constexpr std::int64_t kLargestBatch = 256;  // more tell nothing more
// Forward and back to the pixels or the generator, in the teacher's forward passes of one image.
constexpr double kOptimisedPerStep = 3;

double seconds_per_image(const models::Model& teacher, const at::Tensor& images,
                         Precision precision) {
  const at::NoGradGuard no_grad;
  double least = std::numeric_limits<double>::infinity();
  for (int pass = 0; pass < 4; ++pass) {
    const Stopwatch begin;
    models::execute(teacher.graph, teacher.parameters, images, nullptr, precision).cpu();
    least = std::min(least, begin.seconds());
  }
  return least / static_cast<double>(images.size(0));
}

}  // namespace

Pace measure_pace(const Run& run, double short_pass) {
  const auto images = procedural_images(run.teacher, run.recipe, 0, 8, 0);
  const double fp32 = seconds_per_image(run.teacher, images, Precision::fp32);
  const auto in = [&](Precision precision) {
    return precision == Precision::fp32 ? fp32 : seconds_per_image(run.teacher, images, precision);
  };
  Pace pace{fp32, in(run.recipe.images.precision), in(run.recipe.finetune.precision), 0};
  pace.of_batches = pace.of_learning;
  const std::int64_t batch = std::min(run.recipe.finetune.batch_size, kLargestBatch);
  const std::int64_t few = images.size(0);
  if (batch > few && pace.of_learning * static_cast<double>(few) < short_pass)
    pace.of_batches = seconds_per_image(run.teacher, images.repeat({batch / few, 1, 1, 1}),
                                        run.recipe.finetune.precision);
  return pace;
}

double seconds_of_images(const Recipe& recipe, std::int64_t images, const Pace& pace) {
  const auto passes = image_maker(recipe.images.source).passes(recipe.images, images);
  return kOptimisedPerStep * static_cast<double>(passes) * pace.of_images;
}

}  // namespace zsq::pipeline
