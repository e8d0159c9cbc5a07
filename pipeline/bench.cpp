// SPDX-License-Identifier: Apache-2.0
#include "pipeline/bench.h"

#include <algorithm>

#include "benchmarks/cuda_kernels.h"
#include "benchmarks/machine.h"
#include "benchmarks/networks.h"
#include "benchmarks/train_step.h"
#include "models/load.h"
#include "pipeline/session/boundary.h"
#include "pipeline/session/session.h"
#include "pipeline/version.h"

namespace zsq {
namespace {

constexpr std::int64_t kCifarWidth = 16, kCifarUnits = 3, kCifarImage = 32;  // ResNet-20

bool varies_network(Growth sweep) { return sweep == Growth::width || sweep == Growth::depth; }

std::vector<std::int64_t> values_of(Growth sweep, const std::vector<std::int64_t>& wanted) {
  if (wanted.empty()) {
    switch (sweep) {
      case Growth::batch:
        return {16, 32, 64, 128, 256};
      case Growth::image:
        return {16, 32, 64, 128};
      case Growth::width:
        return {8, 16, 32, 64};
      case Growth::depth:
        return {8, 14, 20, 32, 44, 56};
    }
  }
  const auto least = sweep == Growth::batch ? 2 : sweep == Growth::width ? 1 : 4;
  for (const auto value : wanted) {
    const bool whole_blocks = value >= 8 && value % 6 == 2;
    if (value < least || (sweep == Growth::depth && !whole_blocks))
      throw Error(ErrorCode::usage,
                  "a sweep over " + std::string(enum_name(sweep)) + " cannot take the value " +
                      std::to_string(value) +
                      (sweep == Growth::depth ? "; depths are 6 n + 2: 8, 14, 20, ..."
                                              : "; the least is " + std::to_string(least)));
  }
  return wanted;
}

void check(const BenchOptions& options) {
  validate(options.recipe);
  if (options.rounds < 1) throw Error(ErrorCode::usage, "benchmarks need at least one round");
  if (!options.sweep) {
    if (!options.values.empty())
      throw Error(ErrorCode::usage, "values are those of a sweep, and no sweep was asked for");
    return;
  }
  values_of(*options.sweep, options.values);
  if (varies_network(*options.sweep) &&
      (!options.model.empty() || !options.recipe.model.arch.empty()))
    throw Error(ErrorCode::usage, "a sweep over " + std::string(enum_name(*options.sweep)) +
                                      " builds networks of its own; it takes no model and no "
                                      "architecture");
}

class Bench {
 public:
  Bench(const BenchOptions& options, Observer& observer)
      : options_(options), recipe_(options.recipe), observer_(observer) {
    check(options);
    const Device device = pipeline::start_process(recipe_.process, observer);
    device_ = c10::Device(device == Device::cuda ? c10::kCUDA : c10::kCPU);
    // First, so that a file that cannot be read is told at once.
    if (options.sweep ? !varies_network(*options.sweep) : options.train_step) teacher_ = load();
  }

  BenchReport run() {
    BenchReport report;
    report.tool_version = version();
    report.rounds = options_.rounds;
    say("measuring copies and matrix products");
    report.machine = benchmarks::measure_machine(device_, options_.rounds, observer_);
    if (options_.sweep) {
      report.sweep = options_.sweep;
      for (const auto value : values_of(*options_.sweep, options_.values)) {
        say("timing a training step at " + std::string(enum_name(*options_.sweep)) + " " +
            std::to_string(value));
        report.growth.push_back({value, grown_step(*options_.sweep, value, report.machine)});
      }
      return report;
    }
    if (options_.kernels) {
      say("timing kernels");
      report.kernels =
          benchmarks::time_kernels(report.machine, device_, options_.rounds, observer_);
    }
    if (options_.train_step) {
      say("timing a training step");
      report.step = step_of(teacher_, recipe_.finetune.batch_size, report.machine);
    }
    return report;
  }

 private:
  void say(const std::string& message) { observer_.on_message(LogLevel::info, message); }
  std::uint64_t seed() const { return static_cast<std::uint64_t>(recipe_.process.seed); }

  models::Model on_device(models::Model model) const {
    pipeline::move_to(model.parameters, recipe_.process.device);
    return model;
  }

  models::Model load() const {
    const auto& arch = recipe_.model.arch;
    if (options_.model.empty())
      return on_device(benchmarks::built_in(arch.empty() ? "resnet20_cifar10" : arch,
                                            recipe_.model.image_size.value_or(ImageSize{}).height,
                                            seed()));
    auto model = pipeline::load_float(options_.model, recipe_.model, recipe_.process.device);
    models::require_batch_norm(model);
    return model;
  }

  StepReport step_of(const models::Model& teacher, std::int64_t batch,
                     const MachinePeaks& machine) {
    auto finetune = recipe_.finetune;
    finetune.batch_size = batch;
    return benchmarks::time_training_step(teacher,
                                          {recipe_.generate, recipe_.quantize, finetune, seed()},
                                          machine, options_.rounds, observer_);
  }

  StepReport grown_step(Growth sweep, std::int64_t value, const MachinePeaks& machine) {
    const auto batch = recipe_.finetune.batch_size;
    const auto image = recipe_.model.image_size ? recipe_.model.image_size->height : kCifarImage;
    const auto network = [&](std::int64_t width, std::int64_t units) {
      return on_device(benchmarks::residual_network(width, units, image, seed()));
    };
    switch (sweep) {
      case Growth::batch:
        return step_of(teacher_, value, machine);
      case Growth::image: {
        auto teacher = teacher_;
        teacher.graph.input_shape[1] = teacher.graph.input_shape[2] = value;
        return step_of(teacher, batch, machine);
      }
      case Growth::width:
        return step_of(network(value, kCifarUnits), batch, machine);
      case Growth::depth:
        return step_of(network(kCifarWidth, (value - 2) / 6), batch, machine);
    }
    throw Error(ErrorCode::internal, "a sweep over nothing");
  }

  const BenchOptions& options_;
  const Recipe& recipe_;
  Observer& observer_;
  c10::Device device_{c10::kCPU};
  models::Model teacher_;  // of one step, and of a sweep that keeps it
};

}  // namespace

BenchReport bench(const BenchOptions& options, Observer* observer) {
  Observer silent;
  return pipeline::at_boundary([&] { return Bench(options, observer ? *observer : silent).run(); });
}

}  // namespace zsq
