// SPDX-License-Identifier: Apache-2.0
#include "pipeline/run/prepare.h"
#include "pipeline/run/stage.h"
#include "pipeline/run/stages/calibrate.h"
#include "quant/calibration/ranges.h"
#include "quant/rounding/round_layers.h"

namespace zsq::pipeline {
namespace {

constexpr double kRounded = 7;  // values of the largest size at once

std::string rounding_name(const Recipe& recipe) { return std::string(rounding_of(recipe).title); }

bool rounding_applies(const Recipe& recipe, const models::Model& /*network*/) {
  return rounds_on_images(recipe);
}

StageSeconds rounding_seconds(StageContext& context) {
  const Recipe& recipe = context.run.recipe;
  const auto images = context.learning.count(recipe.quantize.gptq.images);
  const double all =
      rounding_of(recipe).passes_per_image * static_cast<double>(images) * context.pace.in_fp32 +
      context.learning.seconds_of_new(images, context.pace);
  return {all, all};
}

std::vector<MemoryNeed> rounding_memory(const NetworkSizes& network, Recipe& recipe) {
  QuantOptions& o = recipe.quantize;
  return values_between_blocks(
      "rounding", network, recipe, {"quantize.gptq.images", &o.gptq.images},
      {"quantize.layer_batch_size", &o.layer_batch_size}, kRounded * network.largest);
}

// Resumed, blocks of layers that were finished are skipped.
void round_weights(StageContext& context, quant::Student& student, RunState& state,
                   const PartDone& done) {
  const Run& run = context.run;
  const auto& method = rounding_of(run.recipe);
  const at::Tensor images = context.learning.take(
      {.images = run.recipe.quantize.gptq.images, .seconds = seconds_for_images(run)});
  if (state.parts == 0) quant::calibrate(student, images, run.recipe.quantize.layer_batch_size);
  run.say(std::string(method.title) + " on " + std::to_string(images.size(0)) + " images");
  quant::round_layers(
      {.teacher = run.teacher,
       .student = student,
       .method = method,
       .images = images,
       .batch_size = run.recipe.quantize.layer_batch_size,
       .memory = run.recipe.reconstruct.memory,
       .seed = run.seed(),
       .blocks_done = static_cast<std::size_t>(state.parts),
       .on_block_done = [&](std::size_t blocks) { done(static_cast<std::int64_t>(blocks)); }},
      run.observer);
  // The corrected biases have moved the means.
  if (student.options.activations.range == ActivationRange::bn_statistics) calibrate(run, student);
}

}  // namespace

// At few bits rounding alone can look harmful to a depthwise network until each channel's mean and
// standard deviation are restored.
const StageKind kRounding{.name = rounding_name,
                          .applies = rounding_applies,
                          .seconds = rounding_seconds,
                          .memory = rounding_memory,
                          .run = round_weights,
                          .judged_with = &kChannelCorrection};

}  // namespace zsq::pipeline
