// SPDX-License-Identifier: Apache-2.0
#include "train/images/generator_images.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "core/error.h"
#include "core/stopwatch.h"
#include "train/images/finished_images.h"
#include "train/step.h"

namespace zsq::train {
namespace {

constexpr std::int64_t kReportEvery = 16;  // iterations: reading a loss waits for a GPU

void train_generator(const ImageJob& job, generator::Generator& generator, Observer& observer) {
  quant::Student unused = quant::insert_quantizers(job.teacher, {});  // the step's other half
  TrainOptions options;
  options.batch_size = job.options.batch_size;
  options.precision = job.options.precision;
  Step step(job.teacher, unused, generator, options, job.ranks);
  parallel::take_from_first(job.ranks, tensors_of(step.state()));
  const Stopwatch begin;
  for (std::int64_t i = 0; i < job.options.steps; ++i) {
    if (parallel::on_any(job.ranks, observer.stop_requested()))
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

// -1 where an image is of one class.
at::Tensor second_labels(const generator::LatentBatch& draw) {
  const auto last = std::min<std::int64_t>(1, draw.labels.size(1) - 1);
  return draw.labels.select(1, last).masked_fill(draw.weights.select(1, 0).eq(1), -1);
}

}  // namespace

ImageReport make_generator_images(const ImageJob& job, Observer& observer, const ImageSink& sink) {
  const Stopwatch begin;
  FinishedImages finished(job, sink);
  generator::Generator generator(job.teacher, job.generator, job.seed);
  train_generator(job, generator, observer);

  const at::NoGradGuard no_grad;
  const std::int64_t size = job.options.batch_size;
  for (std::int64_t first = 0; first < job.images; first += size) {
    // Whole batches: an image of the generator depends on the batch that it is made in.
    const auto draw = generator.draw(
        size, generator::Generator::kHeldOutSteps + static_cast<std::uint64_t>(first / size));
    const auto n = std::min(size, job.images - first);
    const auto images = generator.forward(draw).narrow(0, 0, n).contiguous();
    hold_to_range(job, images);
    finished.add(images, draw.labels.select(1, 0).narrow(0, 0, n),
                 second_labels(draw).narrow(0, 0, n));
  }
  ImageReport report = finished.report();
  report.steps = job.options.steps;
  report.seconds = begin.seconds();
  return report;
}

}  // namespace zsq::train
