// SPDX-License-Identifier: Apache-2.0
#include "pipeline/stages/stages.h"
#include "quant/calibration/channel_correction.h"

namespace zsq::pipeline {

void correct_channels(const StageContext& context, const CorrectStage& stage,
                      quant::Student& student) {
  context.say("channel correction on " + std::to_string(stage.images.size(0)) + " images");
  quant::correct_channels({.teacher = context.teacher,
                           .student = student,
                           .images = stage.images,
                           .memory = stage.memory},
                          context.observer);
}

}  // namespace zsq::pipeline
