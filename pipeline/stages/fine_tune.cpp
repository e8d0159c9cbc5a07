// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/cat.h>

#include "pipeline/stages/stages.h"

namespace zsq::pipeline {
namespace {

at::Tensor images_of(const std::vector<HeldOutImages>& held_out) {
  std::vector<at::Tensor> images;
  for (const auto& kind : held_out) images.push_back(kind.images);
  return images.empty() ? at::Tensor() : at::cat(images);
}

}  // namespace

train::TrainReport fine_tune(const Run& run, quant::Student& student, bool calibrated,
                             bool resume) {
  const Recipe& recipe = run.recipe;
  generator::Generator generator(run.teacher, recipe.generate, run.seed());
  return train::run(
      {.teacher = run.teacher,
       .student = student,
       .generator = generator,
       .options = recipe.finetune,
       .seed = run.seed(),
       .time_budget = run.clock.has_budget() ? run.clock.left(1) : 0,
       .checkpoint = run.output.checkpoint(),
       .checkpoint_every = recipe.process.checkpoint_every,
       .resume = resume,
       // Writing takes about as long as reading did.
       .seconds_after = [&] { return run.loading + seconds_of_evaluation(run, student); },
       .bank = run.bank_draws ? &*run.bank_draws : nullptr,
       .calibrated = calibrated && !resume,
       .held_out = images_of(run.held_out)},
      run.observer);
}

}  // namespace zsq::pipeline
