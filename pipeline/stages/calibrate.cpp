// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "core/seed.h"
#include "pipeline/images/image_job.h"
#include "pipeline/stages/stages.h"
#include "quant/calibration/bias_correction.h"
#include "quant/calibration/ranges.h"
#include "quant/data_free/equalize.h"

namespace zsq::pipeline {

void calibrate(const Run& run, quant::Student& student) {
  const std::int64_t batch = run.recipe.finetune.batch_size;
  if (run.bank.learn.defined())
    quant::calibrate(student, run.bank.learn.to(run.teacher.parameters.device()), batch);
  else
    quant::calibrate(student, [&, first = std::int64_t{0}]() mutable {
      return dead_leaves(run.teacher, run.recipe, std::exchange(first, first + batch), batch,
                         stream_seed(run.seed(), "calibration", 0));
    });
  quant::refresh_weight_grids(student);
  const QuantOptions& options = run.recipe.quantize;
  if (options.bias_correction == BiasCorrection::bn_statistics)  // now of the activations as well
    quant::correct_bias(student, quant::equalize(run.teacher, options));
}

}  // namespace zsq::pipeline
