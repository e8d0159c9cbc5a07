// SPDX-License-Identifier: Apache-2.0
#include "pipeline/run/prepare.h"
#include "pipeline/run/stage.h"
#include "quant/calibration/channel_correction.h"

namespace zsq::pipeline {
namespace {

// Values of the largest size at once, of both networks.
constexpr double kCorrected = 8;

bool correction_applies(const Recipe& recipe, const models::Model& /*network*/) {
  return recipe.quantize.channel_correction > 0;
}

StageSeconds correction_seconds(StageContext& context) {
  const auto images = context.learning.count(context.run.recipe.quantize.channel_correction);
  const double all =
      kCorrectionPassesPerImage * static_cast<double>(images) * context.pace.in_fp32 +
      context.learning.seconds_of_new(images, context.pace);
  return {all, all};
}

std::vector<MemoryNeed> correction_memory(const NetworkSizes& network, Recipe& recipe) {
  QuantOptions& o = recipe.quantize;
  return values_between_blocks(
      "channel correction", network, recipe, {"quantize.channel_correction", &o.channel_correction},
      {"quantize.layer_batch_size", &o.layer_batch_size}, kCorrected * network.largest);
}

void correct_channels(StageContext& context, quant::Student& student, RunState&, const PartDone&) {
  const Run& run = context.run;
  const at::Tensor images = context.learning.take(
      {.images = run.recipe.quantize.channel_correction, .seconds = seconds_for_images(run)});
  run.say("channel correction on " + std::to_string(images.size(0)) + " images");
  quant::correct_channels({.teacher = run.teacher,
                           .student = student,
                           .images = images,
                           .batch_size = run.recipe.quantize.layer_batch_size,
                           .memory = run.recipe.reconstruct.memory},
                          run.observer);
}

}  // namespace

const StageKind kChannelCorrection{
    .name = [](const Recipe&) -> std::string { return "channel correction"; },
    .applies = correction_applies,
    .seconds = correction_seconds,
    .memory = correction_memory,
    .run = correct_channels};

}  // namespace zsq::pipeline
