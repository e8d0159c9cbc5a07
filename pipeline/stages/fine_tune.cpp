// SPDX-License-Identifier: Apache-2.0
#include "pipeline/stages/stages.h"

namespace zsq::pipeline {

train::TrainReport fine_tune(const StageContext& context, const FineTuneStage& stage,
                             quant::Student& student) {
  generator::Generator generator(context.teacher, stage.generator, context.seed);
  return train::run({.teacher = context.teacher,
                     .student = student,
                     .generator = generator,
                     .options = stage.options,
                     .seed = context.seed,
                     .time_budget = stage.seconds,
                     .checkpoint = stage.checkpoint,
                     .checkpoint_every = stage.checkpoint_every,
                     .resume = stage.resume,
                     .seconds_after = stage.seconds_after,
                     .bank = stage.bank,
                     .noise = stage.noise,
                     .calibrated = stage.calibrated && !stage.resume,
                     .held_out = stage.held_out,
                     .on_images = stage.on_images},
                    context.observer);
}

}  // namespace zsq::pipeline
