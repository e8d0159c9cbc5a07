// SPDX-License-Identifier: Apache-2.0
#include "train/reconstruct.h"

#include "pipeline/stages/stages.h"
#include "quant/ranges.h"

namespace zsq::pipeline {

std::vector<BlockResult> reconstruct(const Run& run, quant::Student& student, double seconds,
                                     const std::vector<BlockResult>& earlier,
                                     const PartDone& done) {
  const Recipe& recipe = run.recipe;
  const Stopwatch begin;
  const auto images = calibration_set(run.teacher, recipe, run.bank.learn,
                                      {.images = recipe.reconstruct.images,
                                       .views = recipe.reconstruct.views,
                                       .seconds = seconds / 2},
                                      run.observer);
  if (earlier.empty()) {
    run.say("calibrating activation ranges on them");
    quant::calibrate(student, images, recipe.reconstruct.batch_size);
  }
  run.say("reconstructing block by block");
  const auto report =
      train::reconstruct({.teacher = run.teacher,
                          .student = student,
                          .images = images,
                          .options = recipe.reconstruct,
                          .seed = run.seed(),
                          .time_budget = seconds > 0 ? std::max(1.0, seconds - begin.seconds()) : 0,
                          .precision = recipe.finetune.precision},
                         run.observer);
  std::vector<BlockResult> blocks = earlier;
  for (const train::BlockReport& block : report.blocks)
    blocks.push_back({block.name, block.before, block.after, block.iterations});
  return blocks;
}

}  // namespace zsq::pipeline
