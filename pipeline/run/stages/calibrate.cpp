// SPDX-License-Identifier: Apache-2.0
#include "pipeline/run/stages/calibrate.h"

#include <utility>

#include "core/seed.h"
#include "pipeline/images/image_job.h"
#include "pipeline/run/stage.h"
#include "quant/calibration/bias_correction.h"
#include "quant/calibration/ranges.h"

namespace zsq::pipeline {
namespace {

// A stage that may be undone needs one before it, and channel correction needs ranges.
bool begins_with_it(const Recipe& recipe, const models::Model& network) {
  if (recipe.process.automatic) return true;
  if (rounds_on_images(recipe)) return false;
  return kChannelCorrection.applies(recipe, network) ||
         (recipe.reconstruct.iterations == 0 &&
          (recipe.finetune.iterations == 0 || undoes_stages(recipe)));
}

bool follows_rounding(const Recipe& recipe, const models::Model& /*network*/) {
  return !recipe.process.automatic && rounds_on_images(recipe) &&
         recipe.reconstruct.iterations == 0 && recipe.finetune.iterations == 0;
}

std::string ranges_and_rounding(const Recipe& recipe) {
  const QuantOptions& options = recipe.quantize;
  const auto& method = quant::rounding_method(options.weights.rounding);
  const std::string range(enum_name(options.activations.range)),
      title(method.needs_images() ? "rounding without images" : method.title);
  return (range == "bn_statistics" ? "statistics and " : range + " ranges and ") + title;
}

void run_it(StageContext& context, quant::Student& student, RunState&, const PartDone&) {
  calibrate(context.run, student);
}

}  // namespace

void calibrate(const Run& run, quant::Student& student) {
  const std::int64_t batch = run.recipe.finetune.batch_size;
  if (run.bank.learn.defined())
    quant::calibrate(student, run.bank.learn.to(run.teacher.parameters.device()), batch);
  else
    quant::calibrate(student, [&, first = std::int64_t{0}]() mutable {
      return procedural_images(run.teacher, run.recipe, std::exchange(first, first + batch), batch,
                               stream_seed(run.seed(), "calibration", 0));
    });
  quant::refresh_weight_grids(student);
  // Now of the activations as well.
  if (student.options.bias_correction == BiasCorrection::bn_statistics)
    quant::correct_bias(student, run.teacher);
}

const StageKind kFirstCalibration{
    .name = ranges_and_rounding, .applies = begins_with_it, .run = run_it, .needed = true};
const StageKind kCalibration{.name = [](const Recipe&) -> std::string { return "calibration"; },
                             .applies = follows_rounding,
                             .run = run_it,
                             .needed = true};

}  // namespace zsq::pipeline
