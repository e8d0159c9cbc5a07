// SPDX-License-Identifier: Apache-2.0
#include "train/reconstruction/reconstruct.h"

#include <algorithm>

#include "pipeline/stages/stages.h"
#include "quant/calibration/ranges.h"
#include "quant/paired_blocks.h"

namespace zsq::pipeline {

std::int64_t affordable_views(const StageContext& context, const ReconstructOptions& options,
                              const quant::Student& student, std::int64_t images) {
  const auto wanted = options.augmentations_per_image;
  const auto room =
      quant::PairedBlocks(context.teacher, student).room(options.memory, at::kBFloat16);
  const auto views = std::clamp<std::int64_t>(room / images, 1, wanted);
  if (views < wanted)
    context.say("reconstruct.memory holds the values of " + std::to_string(room) +
                " images, so that each of " + std::to_string(images) + " is seen in " +
                std::to_string(views) +
                " of reconstruct.augmentations_per_image=" + std::to_string(wanted) + " views");
  return views;
}

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
                      .folder = stage.folder,
                      .done = earlier,
                      .on_block_done = on_block_done},
                     context.observer);
}

}  // namespace zsq::pipeline
