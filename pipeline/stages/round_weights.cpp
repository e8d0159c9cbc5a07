// SPDX-License-Identifier: Apache-2.0
#include "pipeline/stages/stages.h"
#include "quant/calibration/ranges.h"
#include "quant/rounding/round_layers.h"

namespace zsq::pipeline {
namespace {

constexpr std::int64_t kRoundingBatch = 16;

}  // namespace

void round_weights(const StageContext& context, const RoundStage& stage, quant::Student& student) {
  if (stage.parts_done == 0) quant::calibrate(student, stage.images, kRoundingBatch);
  context.say(std::string(stage.method.title) + " on " + std::to_string(stage.images.size(0)) +
              " images");
  quant::round_layers(
      {.teacher = context.teacher,
       .student = student,
       .method = stage.method,
       .images = stage.images,
       .batch_size = kRoundingBatch,
       .memory = stage.memory,
       .seed = context.seed,
       .blocks_done = static_cast<std::size_t>(stage.parts_done),
       .on_block_done =
           [&](std::size_t blocks) { stage.on_part_done(static_cast<std::int64_t>(blocks)); }},
      context.observer);
  if (student.options.activations.range == ActivationRange::bn_statistics)
    calibrate(context, stage.ranges, student);  // the corrected biases have moved the means
}

}  // namespace zsq::pipeline
