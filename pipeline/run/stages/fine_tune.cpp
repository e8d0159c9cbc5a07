// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/cat.h>

#include <algorithm>

#include "parallel/ranks.h"
#include "pipeline/run/finish.h"
#include "pipeline/run/prepare.h"
#include "pipeline/run/stage.h"
#include "train/trainer.h"

namespace zsq::pipeline {
namespace {

// What an image of a batch takes in the teacher's forward passes: generator, teacher and student,
// both ways; or the teacher forward and the student both ways.
constexpr double kPassesWithGenerator = 14, kPassesOnImages = 5;
// Fewer iterations than this leave a student worse than they found it.
constexpr std::int64_t kFewestWithGenerator = 300, kFewestOnImages = 60;

bool tuning_applies(const Recipe& recipe, const models::Model& /*network*/) {
  return recipe.finetune.iterations > 0;
}

StageSeconds tuning_seconds(StageContext& context) {
  const TrainOptions& o = context.run.recipe.finetune;
  const bool generates = o.images == 0;
  const double iteration = (generates ? kPassesWithGenerator : kPassesOnImages) *
                           static_cast<double>(o.batch_size) * context.pace.of_batches;
  const auto fewest = std::min(o.iterations, generates ? kFewestWithGenerator : kFewestOnImages);
  const double images =
      generates ? 0
                : context.learning.seconds_of_new(context.learning.count(o.images), context.pace);
  return {images + static_cast<double>(fewest) * iteration,
          images + static_cast<double>(o.iterations) * iteration};
}

std::vector<MemoryNeed> tuning_memory(const NetworkSizes& network, Recipe& recipe) {
  constexpr std::int64_t kLeastBatch = 2;
  TrainOptions& o = recipe.finetune;
  const bool generates = o.images == 0;
  const GeneratorNeed generator = generator_need(network);
  const double each = network.outputs + (generates ? generator.each : 0);
  std::vector<MemoryNeed> needs;
  if (!generates)
    needs.push_back({"fine-tuning", network.alone() + kLeastBatch * each, network.image,
                     "finetune.images", &o.images, 2});
  needs.push_back({"fine-tuning",
                   network.alone() + (generates ? generator.fixed
                                                : static_cast<double>(o.images) * network.image),
                   each, "finetune.batch_size", &o.batch_size, kLeastBatch});
  return needs;
}

// What it takes instead of a generator's images, or beside them, and what it is checked on.
struct TuningImages {
  std::optional<train::BankDraws> draws;
  at::Tensor held_out;  // undefined: the generator makes them
};

TuningImages images_to_tune_on(StageContext& context) {
  const Run& run = context.run;
  const TrainOptions& o = run.recipe.finetune;
  TuningImages result{run.bank_draws, {}};
  std::vector<at::Tensor> held_out;
  for (const auto& kind : run.held_out) held_out.push_back(kind.images);
  if (!held_out.empty()) result.held_out = at::cat(held_out);
  if (o.images == 0) return result;
  auto images = context.learning.take({.images = o.images, .seconds = seconds_for_images(run)});
  if (!result.held_out.defined() && o.validation_checks > 0 && images.size(0) > 1) {
    const auto n = std::clamp<std::int64_t>(images.size(0) / 4, 1, o.validation_images);
    result.held_out = images.slice(0, 0, n);
    images = images.slice(0, n);
  }
  result.draws.emplace(train::ImageBank{images, {}}, /*share=*/1, run.recipe.images, run.seed());
  return result;
}

// Resumed, it goes on from its own checkpoint.
void fine_tune(StageContext& context, quant::Student& student, RunState& state, const PartDone&) {
  const Run& run = context.run;
  const auto images = images_to_tune_on(context);
  const bool resume =
      parallel::agreed(parallel::current(), std::filesystem::exists(run.output.checkpoint()));
  const bool generates = !images.draws || !images.draws->whole();
  generator::Generator generator(run.source, run.recipe.generate, run.seed(), generates);
  context.trained =
      train::run({.teacher = run.teacher,
                  .student = student,
                  .generator = generator,
                  .options = run.recipe.finetune,
                  .seed = run.seed(),
                  .time_budget = run.clock.has_budget() ? run.clock.left(1) : 0,
                  .checkpoint = run.output.checkpoint(),
                  .checkpoint_every = run.recipe.process.checkpoint_every,
                  .resume = resume,
                  .seconds_after = [&] { return seconds_of_finish(run, student); },
                  .bank = images.draws ? &*images.draws : nullptr,
                  .noise = run.noise ? &*run.noise : nullptr,
                  .mirror = run.recipe.images.flip,
                  // The ranges of a stage before stay; else they are taken after the warm-up.
                  .calibrated = state.stages.size() > 1 && !resume,
                  .held_out = images.held_out,
                  .on_images = run.on_images},
                 run.observer);
}

}  // namespace

const StageKind kFineTuning{.name = [](const Recipe&) -> std::string { return "fine-tuning"; },
                            .applies = tuning_applies,
                            .seconds = tuning_seconds,
                            .memory = tuning_memory,
                            .run = fine_tune,
                            .learns = true};

}  // namespace zsq::pipeline
