// SPDX-License-Identifier: Apache-2.0
#include "pipeline/stages/stages.h"
#include "quant/data_free/equalize.h"

namespace zsq::pipeline {

train::TrainReport fine_tune(const StageContext& context, const FineTuneStage& stage,
                             quant::Student& student) {
  generator::Generator generator(context.teacher, stage.generator, context.seed);
  // Whose maps have the units of the student's.
  const models::Model teacher = quant::equalize(context.teacher, student.options);
  return train::run({.teacher = teacher,
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
                     .mirror = stage.mirror,
                     .calibrated = stage.calibrated && !stage.resume,
                     .held_out = stage.held_out,
                     .on_images = stage.on_images},
                    context.observer);
}

}  // namespace zsq::pipeline
