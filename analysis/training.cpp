// SPDX-License-Identifier: Apache-2.0
#include "analysis/training.h"

#include <ATen/core/grad_mode.h>

#include "core/error.h"
#include "models/execute.h"
#include "quant/rewrites/equalize.h"
#include "train/schedule.h"
#include "train/step.h"

namespace zsq::analysis {

Training::Training(const TrainingSetup& setup)
    : setup_(setup),
      student_(
          quant::insert_quantizers(quant::equalize(setup.teacher, setup.quantize), setup.quantize)),
      generator_(setup.teacher, setup.generator, setup.seed) {}

void Training::run(Observer& observer, const Look& before_step, const Look& after_step) {
  const TrainOptions& options = setup_.finetune;
  train::Step step(setup_.teacher, student_, generator_, options);
  train::Schedule schedule(options, /*budget=*/0);
  std::int64_t first = -1;  // iteration that trains the student
  while (schedule.next(/*elapsed=*/0)) {
    if (observer.stop_requested()) throw Error(ErrorCode::stopped, "stopped; nothing was saved");
    const double factor = train::rate_factor(options, schedule.share());
    const std::int64_t done = schedule.done();
    const auto draw = step.draw(static_cast<std::uint64_t>(done));
    const bool warming_up = schedule.warming_up();
    if (!warming_up && first < 0) {
      step.calibrate();
      first = done;
    }
    const train::Batch batch = step.generator_step(draw, factor);
    if (warming_up) {
      schedule.warmup_took(0);
    } else {
      const Sample sample{batch.images, batch.logits, draw.targets,
                          setup_.teacher.graph.signature.kind};
      const std::int64_t steps = options.iterations - first;
      if (before_step) before_step(done - first, steps, sample);
      step.student_step(batch, factor);
      if (after_step) after_step(done - first, steps, sample);
      schedule.finetune_took(0);
    }
    observer.on_progress(
        {warming_up ? "warm-up" : "fine-tune", done + 1, options.iterations, 0, {}});
  }
}

Sample Training::held_out(std::int64_t images) const {
  const at::NoGradGuard no_grad;
  const auto draw = generator_.draw(images, generator::Generator::kHeldOutSteps);
  return sample_of(setup_.teacher, generator_.forward(draw).detach(), draw.targets);
}

Sample sample_of(const models::Model& teacher, const at::Tensor& images,
                 const at::Tensor& targets) {
  const at::NoGradGuard no_grad;
  return {images, models::execute(teacher.graph, teacher.parameters, images), targets,
          teacher.graph.signature.kind};
}

}  // namespace zsq::analysis
