// SPDX-License-Identifier: Apache-2.0
#include "pipeline/run/stages/reconstruct.h"

#include <algorithm>

#include "pipeline/run/finish.h"
#include "pipeline/run/prepare.h"
#include "pipeline/run/stage.h"
#include "quant/calibration/ranges.h"
#include "quant/paired_blocks.h"
#include "train/reconstruction/reconstruct.h"

namespace zsq::pipeline {
namespace {

// Forward and backward of a student block with drops, in the teacher's forward passes.
constexpr double kPassesPerStep = 6;

bool reconstruction_applies(const Recipe& recipe, const models::Model& /*network*/) {
  return recipe.reconstruct.iterations > 0;
}

// Values of the largest size at once: a block, its gradients, and what it is held against.
constexpr double kReconstructed = 12;

StageSeconds reconstruction_seconds(StageContext& context) {
  const ReconstructOptions& o = context.run.recipe.reconstruct;
  const auto images = context.learning.count(o.images);
  const double steps = kPassesPerStep * static_cast<double>(o.iterations * o.batch_size);
  const double passes = steps + 4 * static_cast<double>(images * o.augmentations_per_image);
  const double all =
      passes * context.pace.of_learning + context.learning.seconds_of_new(images, context.pace);
  return {all, all};
}

std::vector<MemoryNeed> reconstruction_memory(const NetworkSizes& network, Recipe& recipe) {
  ReconstructOptions& o = recipe.reconstruct;
  return values_between_blocks(
      "block reconstruction", network, recipe, {"reconstruct.images", &o.images},
      {"reconstruct.batch_size", &o.batch_size}, kReconstructed * network.largest);
}

// Half of a time budget if fine-tuning follows, else all of it; 0: any.
double budget_of(const Run& run, const quant::Student& student) {
  if (!run.clock.has_budget()) return 0;
  const bool ends_here = run.recipe.finetune.iterations == 0 || run.recipe.process.automatic;
  const double after =
      ends_here ? seconds_of_finish(run, student) : run.recipe.process.time_budget.seconds / 2;
  return std::max(1.0, run.clock.left(1) - after);
}

// With ranges from its images. Resumed, it goes on after the last of state.blocks.
void reconstruct(StageContext& context, quant::Student& student, RunState& state,
                 const PartDone& done) {
  const Run& run = context.run;
  const ReconstructOptions& o = run.recipe.reconstruct;
  const double budget = budget_of(run, student);
  const Stopwatch begin;
  const auto views =
      affordable_views(run.teacher, student, o, context.learning.count(o.images), run.observer);
  const at::Tensor images =
      context.learning.take({.images = o.images, .views = views, .seconds = budget / 2});
  if (state.blocks.empty()) {
    run.say("calibrating activation ranges on " + std::to_string(images.size(0)) + " images");
    quant::calibrate(student, images, o.batch_size);
  }
  run.say("block reconstruction");
  std::vector<train::BlockReport> earlier;
  for (const BlockResult& block : state.blocks)
    earlier.push_back({block.name, block.before, block.after, block.iterations});
  const auto on_block_done = [&](const std::vector<train::BlockReport>& reports) {
    const train::BlockReport& last = reports.back();
    state.blocks.push_back({last.name, last.before, last.after, last.iterations});
    done(std::ssize(reports));
  };
  train::reconstruct({.teacher = run.teacher,
                      .student = student,
                      .images = images,
                      .options = o,
                      .seed = run.seed(),
                      .time_budget = budget > 0 ? std::max(1.0, budget - begin.seconds()) : 0,
                      .precision = run.recipe.finetune.precision,
                      // For values that reconstruct.memory does not hold.
                      .folder = run.output.checkpoint().parent_path(),
                      .done = earlier,
                      .on_block_done = on_block_done},
                     run.observer);
}

}  // namespace

std::int64_t affordable_views(const models::Model& teacher, const quant::Student& student,
                              const ReconstructOptions& options, std::int64_t images,
                              Observer& observer) {
  const auto wanted = options.augmentations_per_image;
  const auto room = quant::PairedBlocks(teacher, student).room(options.memory, at::kBFloat16);
  const auto views = std::clamp<std::int64_t>(room / images, 1, wanted);
  if (views < wanted)
    observer.on_message(LogLevel::info,
                        "reconstruct.memory holds the values of " + std::to_string(room) +
                            " images, so that each of " + std::to_string(images) + " is seen in " +
                            std::to_string(views) + " of reconstruct.augmentations_per_image=" +
                            std::to_string(wanted) + " views");
  return views;
}

const StageKind kReconstruction{
    .name = [](const Recipe&) -> std::string { return "block reconstruction"; },
    .applies = reconstruction_applies,
    .seconds = reconstruction_seconds,
    .memory = reconstruction_memory,
    .run = reconstruct,
    .learns = true,
    .most_share = 0.25};

}  // namespace zsq::pipeline
