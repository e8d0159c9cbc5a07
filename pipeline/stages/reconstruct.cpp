// SPDX-License-Identifier: Apache-2.0
#include "train/reconstruction/reconstruct.h"

#include "pipeline/stages/stages.h"
#include "quant/calibration/ranges.h"

namespace zsq::pipeline {

void reconstruct(const StageContext& context, const ReconstructStage& stage,
                 quant::Student& student) {
  if (stage.blocks.empty()) {
    context.say("calibrating activation ranges on " + std::to_string(stage.images.size(0)) +
                " images");
    quant::calibrate(student, stage.images, stage.options.batch_size);
  }
  context.say("block reconstruction");
  std::vector<train::BlockReport> earlier;
  for (const BlockResult& block : stage.blocks)
    earlier.push_back({block.name, block.before, block.after, block.iterations});
  const auto on_block_done = [&](const std::vector<train::BlockReport>& reports) {
    const train::BlockReport& last = reports.back();
    stage.blocks.push_back({last.name, last.before, last.after, last.iterations});
    stage.on_part_done(std::ssize(reports));
  };
  train::reconstruct({.teacher = context.teacher,
                      .student = student,
                      .images = stage.images,
                      .options = stage.options,
                      .seed = context.seed,
                      .time_budget = stage.seconds,
                      .precision = stage.precision,
                      .done = earlier,
                      .on_block_done = on_block_done},
                     context.observer);
}

}  // namespace zsq::pipeline
