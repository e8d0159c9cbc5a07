// SPDX-License-Identifier: Apache-2.0
#include "pipeline/stages/stages.h"
#include "quant/calibration/ranges.h"
#include "quant/rounding/gptq.h"

namespace zsq::pipeline {
namespace {

constexpr std::int64_t kBatch = 16;

}  // namespace

void round_weights(const Run& run, quant::Student& student, std::int64_t first_part,
                   const PartDone& done) {
  const Recipe& recipe = run.recipe;
  const auto images =
      calibration_set(run.teacher, recipe, run.bank.learn,
                      {.images = recipe.quantize.gptq.images,
                       .seconds = run.clock.has_budget() ? run.clock.left(1) / 4 : 0},
                      run.observer);
  if (first_part == 0) quant::calibrate(student, images, kBatch);
  run.say("GPTQ-style rounding on " + std::to_string(images.size(0)) + " images");
  quant::round_weights_by_gptq(
      {.teacher = run.teacher,
       .student = student,
       .images = images,
       .batch_size = kBatch,
       .memory = recipe.reconstruct.memory,
       .seed = run.seed(),
       .blocks_done = static_cast<std::size_t>(first_part),
       .on_block_done = [&](std::size_t blocks) { done(static_cast<std::int64_t>(blocks)); }},
      run.observer);
  if (student.options.activations.range == ActivationRange::bn_statistics)
    calibrate(run, student);  // the corrected biases have moved the means
}

}  // namespace zsq::pipeline
