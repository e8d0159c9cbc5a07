// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "pipeline/stages/stages.h"
#include "quant/calibration/bias_correction.h"
#include "quant/calibration/ranges.h"
#include "quant/data_free/equalize.h"

namespace zsq::pipeline {

void calibrate(const StageContext& context, const CalibrateStage& stage, quant::Student& student) {
  if (stage.bank.defined())
    quant::calibrate(student, stage.bank.to(context.teacher.parameters.device()), stage.batch_size);
  else
    quant::calibrate(student, [&, first = std::int64_t{0}]() mutable {
      return stage.dead_leaves(std::exchange(first, first + stage.batch_size), stage.batch_size);
    });
  quant::refresh_weight_grids(student);
  // Now of the activations as well.
  if (student.options.bias_correction == BiasCorrection::bn_statistics)
    quant::correct_bias(student, quant::equalize(context.teacher, student.options));
}

}  // namespace zsq::pipeline
