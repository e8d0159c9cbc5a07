// SPDX-License-Identifier: Apache-2.0
#include "train/reconstruction/reconstruct.h"

#include "pipeline/stages/stages.h"
#include "quant/calibration/ranges.h"

namespace zsq::pipeline {

void reconstruct(const Run& run, quant::Student& student, double seconds,
                 std::vector<BlockResult>& blocks, const PartDone& done) {
  const Recipe& recipe = run.recipe;
  const Stopwatch begin;
  const auto images = calibration_set(run.teacher, recipe, run.bank.learn,
                                      {.images = recipe.reconstruct.images,
                                       .views = recipe.reconstruct.augmentations_per_image,
                                       .seconds = seconds / 2},
                                      run.observer);
  if (blocks.empty()) {
    run.say("calibrating activation ranges on " + std::to_string(images.size(0)) + " images");
    quant::calibrate(student, images, recipe.reconstruct.batch_size);
  }
  run.say("block reconstruction");
  std::vector<train::BlockReport> earlier;
  for (const BlockResult& block : blocks)
    earlier.push_back({block.name, block.before, block.after, block.iterations});
  const auto on_block_done = [&](const std::vector<train::BlockReport>& reports) {
    const train::BlockReport& last = reports.back();
    blocks.push_back({last.name, last.before, last.after, last.iterations});
    done(std::ssize(reports));
  };
  train::reconstruct({.teacher = run.teacher,
                      .student = student,
                      .images = images,
                      .options = recipe.reconstruct,
                      .seed = run.seed(),
                      .time_budget = seconds > 0 ? std::max(1.0, seconds - begin.seconds()) : 0,
                      .precision = recipe.finetune.precision,
                      .done = earlier,
                      .on_block_done = on_block_done},
                     run.observer);
}

}  // namespace zsq::pipeline
