// SPDX-License-Identifier: Apache-2.0
#include "train/generator_images.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/clamp.h>

#include <algorithm>

#include "core/error.h"
#include "core/stopwatch.h"
#include "train/parameters.h"
#include "train/step.h"

namespace zsq::train {
namespace {

constexpr std::int64_t kReportEvery = 16;  // iterations: reading a loss waits for a GPU

void train_generator(const ImageJob& job, generator::Generator& generator, Observer& observer) {
  quant::Student unused = quant::insert_quantizers(job.teacher, {});  // the step's other half
  TrainOptions options;
  options.batch_size = job.options.batch_size;
  options.precision = job.options.precision;
  Step step(job.teacher, unused, generator, options);
  const Stopwatch begin;
  for (std::int64_t i = 0; i < job.options.steps; ++i) {
    if (observer.stop_requested())
      throw Error(ErrorCode::stopped, "stopped after " + std::to_string(i) + " of " +
                                          std::to_string(job.options.steps) +
                                          " iterations of the generator; nothing was kept");
    const Batch batch = step.generator_step(static_cast<std::uint64_t>(i), /*factor=*/1);
    const std::int64_t done = i + 1;
    if (done % kReportEvery == 0 || done == job.options.steps)
      observer.on_progress({"generator",
                            done,
                            job.options.steps,
                            begin.seconds(),
                            {{"loss_generator", batch.loss.item<double>()}}});
  }
}

}  // namespace

ImageReport make_generator_images(const ImageJob& job, Observer& observer, const ImageSink& sink) {
  const Stopwatch begin;
  if (job.images < 1)
    throw Error(ErrorCode::usage,
                std::to_string(job.images) + " images were asked for; 1 is the least");
  generator::Generator generator(job.teacher, job.generator, job.seed);
  train_generator(job, generator, observer);

  const at::NoGradGuard no_grad;
  const TeacherPass pass(job.teacher.graph, job.teacher.parameters);
  const auto running = running_moments(job.teacher);
  const std::int64_t size = job.options.batch_size;
  ImageReport report{.images = job.images, .steps = job.options.steps};
  for (std::int64_t first = 0; first < job.images; first += size) {
    // Whole batches: an image of the generator depends on the batch that it is made in.
    const auto draw = generator.draw(
        size, generator::Generator::kHeldOutSteps + static_cast<std::uint64_t>(first / size));
    at::Tensor images = generator.forward(draw);
    if (job.lowest.defined())
      images = at::clamp(images, job.lowest.to(images.device()).view({-1, 1, 1}),
                         job.highest.to(images.device()).view({-1, 1, 1}));
    const auto n = std::min(size, job.images - first);
    images = images.narrow(0, 0, n);
    const auto labels = draw.labels.select(1, 0).narrow(0, 0, n);
    const auto seen = pass(images);
    const double share = static_cast<double>(n) / static_cast<double>(job.images);
    report.cross_entropy +=
        share * losses::hard_sample_cross_entropy(seen.logits, labels, 0).item<double>();
    report.batch_norm_statistics +=
        share * losses::batch_norm_statistics(seen.moments, running).item<double>();
    report.label_agreement +=
        share * seen.logits.argmax(1).eq(labels).to(at::kDouble).mean().item<double>();
    sink({first, images.contiguous().cpu(), labels.cpu(), seen.logits.cpu()});
  }
  report.seconds = begin.seconds();
  return report;
}

}  // namespace zsq::train
