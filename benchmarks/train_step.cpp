// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/train_step.h"

#include <array>

#include "benchmarks/flops.h"
#include "benchmarks/memory.h"
#include "core/error.h"
#include "quant/rewrites/equalize.h"
#include "train/device_setup.h"

namespace zsq::benchmarks {
namespace {

using train::Part;

constexpr std::array<const char*, train::kParts> kPartNames{
    "generator_forward", "teacher_forward", "teacher_backward", "generator_backward",
    "generator_update",  "student_forward", "student_backward", "student_update"};

// Seconds of every part and of the whole, a round after the other.
class Stopwatch {
 public:
  explicit Stopwatch(c10::Device device) : device_(device) {}
  void begin_round() { begin_ = last_ = now(device_); }
  // A large batch goes through a part several times in a round.
  void part_done(Part part) {
    const double time = now(device_);
    auto& samples = parts_[static_cast<std::size_t>(part)];
    if (samples.size() <= rounds_.size()) samples.push_back(0);
    samples.back() += time - last_;
    last_ = time;
  }
  void end_round() { rounds_.push_back(now(device_) - begin_); }
  void forget() {
    for (auto& samples : parts_) samples.clear();
    rounds_.clear();
  }
  Seconds part(std::size_t index) const { return summarize(parts_[index]); }
  Seconds whole() const { return summarize(rounds_); }

 private:
  c10::Device device_;
  double begin_ = 0, last_ = 0;
  std::array<std::vector<double>, train::kParts> parts_;
  std::vector<double> rounds_;
};

void throw_if_skipped(const train::Batch& batch, const train::StudentStep& student) {
  if (!batch.skipped.item<bool>() && !student.skipped.item<bool>()) return;
  throw Error(ErrorCode::numeric_failure,
              "the step cannot be timed: its gradients are not finite; choose another --seed or "
              "model");
}

void run_round(train::Step& step, std::uint64_t iteration) {
  const auto batch = step.generator_step(iteration, 1);
  throw_if_skipped(batch, step.student_step(batch, 1));
}

// Iterations as fine-tuning runs them on a GPU, where the host waits for none of them.
Seconds time_recorded_steps(train::Step& step, const train::GraphStep::MakeGraph& make_graph,
                            std::int64_t rounds, c10::Device device, Observer& observer) {
  constexpr int kUntimed = 8, kPerRound = 20;
  train::GraphStep steps(step, make_graph, observer);
  std::uint64_t iteration = 0;
  const auto run = [&](int iterations) {
    train::Batch batch;
    train::StudentStep student;
    for (int i = 0; i < iterations; ++i) {
      batch = steps.generator_step(iteration++, 1);
      student = steps.student_step(batch, 1);
    }
    steps.join();
    throw_if_skipped(batch, student);
  };
  run(kUntimed);
  std::vector<double> samples;
  for (std::int64_t round = 0; round < rounds; ++round) {
    stop_if_asked(observer);
    const double begin = now(device);
    run(kPerRound);
    samples.push_back((now(device) - begin) / kPerRound);
  }
  return summarize(std::move(samples));
}

struct Work {
  double flops = 0;
  Precision precision = Precision::fp32;
};

std::array<Work, train::kParts> work_of_parts(const models::Model& teacher,
                                              const quant::Student& student,
                                              const generator::Generator& generator,
                                              Precision precision) {
  const Flops g = count_flops(generator, precision);
  const Flops t = count_flops(teacher.graph, teacher.parameters, /*image_wants_gradient=*/true);
  const Flops s = count_flops(student.graph, student.parameters, /*image_wants_gradient=*/false);
  std::array<Work, train::kParts> work;
  const auto of = [&](Part part) -> Work& { return work[static_cast<std::size_t>(part)]; };
  of(Part::generator_forward) = {g.forward, precision};
  of(Part::generator_backward) = {g.backward, precision};
  of(Part::teacher_forward) = {t.forward, precision};
  of(Part::teacher_backward) = {t.backward, precision};
  of(Part::student_forward) = {s.forward, precision};
  of(Part::student_backward) = {s.backward, precision};
  return work;
}

StepReport describe(const models::Model& teacher, const StepSettings& settings) {
  StepReport report;
  report.model = teacher.source_path.empty() ? teacher.architecture : teacher.source_path;
  report.scheme.append("W").append(std::to_string(settings.quantize.weights.num_bits));
  report.scheme.append("A").append(std::to_string(settings.quantize.activations.num_bits));
  report.batch = settings.finetune.batch_size;
  report.image_size = teacher.graph.input_shape[1];
  for (const auto& node : teacher.graph.nodes) {
    if (models::is<models::Conv2d>(node) || models::is<models::Linear>(node)) ++report.layers;
    for (const auto& [role, name] : node.params)
      if (role != "mean" && role != "variance")
        report.parameters += teacher.parameters.at(name).numel();
  }
  return report;
}

}  // namespace

StepReport time_training_step(const models::Model& teacher, const StepSettings& settings,
                              const MachinePeaks& machine, std::int64_t rounds,
                              Observer& observer) {
  StepReport report = describe(teacher, settings);
  const auto device = teacher.parameters.device();
  const PeakMemory memory(device);
  auto quantize = settings.quantize;
  quantize.activations.calibration_images = report.batch;
  quant::Student student = quant::insert_quantizers(quant::equalize(teacher, quantize), quantize);
  generator::Generator generator(teacher, settings.generate, settings.seed);
  const train::TrainJob job{teacher, student, generator, settings.finetune};
  train::Step step(teacher, student, generator, settings.finetune);
  train::choose_convolutions(job, step, observer);
  step.calibrate();

  Stopwatch stopwatch(device);
  step.on_part_done([&](Part part) { stopwatch.part_done(part); });
  // The first round pays for setting up kernels, the second for memory.
  for (std::int64_t round = -2; round < rounds; ++round) {
    stop_if_asked(observer);
    if (round == -1) memory.restart();
    if (round == 0) stopwatch.forget();
    stopwatch.begin_round();
    run_round(step, static_cast<std::uint64_t>(round + 2));
    stopwatch.end_round();
  }
  report.seconds = stopwatch.whole();
  step.on_part_done({});
  if (const auto make_graph = train::graph_maker(job)) {
    report.seconds = time_recorded_steps(step, make_graph, rounds, device, observer);
    report.recorded = true;
  }
  report.memory_before = memory.before();
  report.memory_peak = memory.peak();
  const auto work = work_of_parts(teacher, student, generator, settings.finetune.precision);
  for (std::size_t i = 0; i < work.size(); ++i) {
    const double flops = work[i].flops * static_cast<double>(report.batch);
    const double peak =
        work[i].precision == Precision::bf16 ? machine.gemm_bf16 : machine.gemm_fp32;
    const Seconds seconds = stopwatch.part(i);
    report.parts.push_back({kPartNames[i], std::string(enum_name(work[i].precision)), seconds,
                            flops, flops / seconds.min / peak});
    report.flops += flops;
  }
  return report;
}

}  // namespace zsq::benchmarks
