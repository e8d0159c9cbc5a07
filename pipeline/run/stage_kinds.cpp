// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "pipeline/images/image_job.h"
#include "pipeline/run/prepare.h"
#include "pipeline/run/stage.h"

namespace zsq::pipeline {
namespace {

// Forward and back to the pixels or the generator, in the teacher's forward passes of one image.
constexpr double kOptimisedPerStep = 3;

}  // namespace

std::span<const StageKind* const> stage_kinds() {
  static constexpr std::array kinds{&kFirstCalibration, &kFirstValueRanges, &kRounding,
                                    &kCalibration,      &kValueRanges,      &kChannelCorrection,
                                    &kReconstruction,   &kFineTuning};
  return kinds;
}

const quant::RoundingMethod& rounding_of(const Recipe& recipe) {
  const auto& method = quant::rounding_method(recipe.quantize.weights.rounding);
  return recipe.process.automatic && !method.needs_images()
             ? quant::rounding_method(WeightRounding::gptq)
             : method;
}

bool rounds_on_images(const Recipe& recipe) { return rounding_of(recipe).needs_images(); }

double seconds_of_images(const Run& run, std::int64_t images, const Pace& pace) {
  if (run.bank.learn.defined()) return 0;
  const auto passes = image_maker(run.recipe.images.source).passes(run.recipe.images, images);
  return kOptimisedPerStep * static_cast<double>(passes) * pace.of_images;
}

double seconds_of_new_images(StageContext& context, std::int64_t images) {
  return context.learning.are_new(images) ? seconds_of_images(context.run, images, context.pace)
                                          : 0;
}

double seconds_for_images(const Run& run) {
  return run.clock.has_budget() ? run.clock.left(1) / 4 : 0;
}

}  // namespace zsq::pipeline
