// SPDX-License-Identifier: Apache-2.0
#include "train/device_setup.h"

#include <ATen/Context.h>

#include "train/convolution_rehearsal.h"

namespace zsq::train {

c10::Device device_of(const TrainJob& job) { return job.teacher.parameters.device(); }

GraphStep::MakeGraph graph_maker(const TrainJob& job) {
  const auto device = device_of(job);
  if (device.is_cpu() || !job.options.cuda_graphs || parallel::several(job.ranks)) return nullptr;
  return [device] { return cuda_kernels::make_device_graph(device); };
}

void choose_convolutions(const TrainJob& job, Step& step, Observer& observer) {
  if (device_of(job).is_cpu() || at::globalContext().deterministicCuDNN()) return;
  try {
    const auto chosen = fastest([&](const ConvolutionSettings& settings) {
      return seconds_of_convolutions(job.teacher, job.options.batch_size, job.options.precision,
                                     settings);
    });
    step.use(chosen);
    observer.on_message(LogLevel::info, "convolutions, as timed at the start: " + describe(chosen));
  } catch (const c10::Error& error) {  // the trial may take more memory than a training step
    observer.on_message(LogLevel::info, std::string("convolutions are not timed at the start: ") +
                                            error.what_without_backtrace());
  }
}

std::ptrdiff_t read_every(const TrainJob& job) {
  if (job.read_every > 0) return job.read_every;
  return device_of(job).is_cpu() || job.time_budget > 0 ? 1 : 16;
}

}  // namespace zsq::train
