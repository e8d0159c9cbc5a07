// SPDX-License-Identifier: Apache-2.0
#include "train/delayed_metrics.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>

#include <utility>

#include "core/error.h"

namespace zsq::train {
namespace {

constexpr double kDecay = 0.95;     // of the displayed agreement: about the last twenty iterations
constexpr double kLastPart = 0.95;  // share of the run after which losses count in the report

}  // namespace

at::Tensor DelayedMetrics::copy_of(std::vector<at::Tensor> numbers) const {
  for (auto& number : numbers) number = number.to(at::kDouble);
  const auto all = at::stack(numbers);
  return read_every_ == 1 ? all.to(at::kCPU) : all;
}

at::Tensor DelayedMetrics::numbers_of(const Batch& batch) const {
  return copy_of({batch.loss, batch.statistics, batch.skipped});
}

at::Tensor DelayedMetrics::numbers_of(const StudentStep& student) const {
  return copy_of({student.loss, student.agreement, student.skipped});
}

void DelayedMetrics::add(std::string_view phase, const Schedule& schedule, double factor,
                         const at::Tensor& generator, const at::Tensor& student) {
  unread_.push_back(
      {phase, schedule.done(), schedule.total(), schedule.share(), factor, generator, student});
  if (std::ssize(unread_) >= read_every_) read();
}

void DelayedMetrics::read() {
  if (unread_.empty()) return;
  join_();
  std::vector<at::Tensor> numbers;
  for (const auto& iteration : unread_) {
    const auto &generator = iteration.generator, &student = iteration.student;
    numbers.push_back(generator.defined() ? generator : student.new_zeros({3}));
    numbers.push_back(student.defined() ? student : generator.new_zeros({3}));
  }
  const auto rows = at::cat(numbers).view({-1, 6}).to(at::kCPU);
  const auto values = rows.accessor<double, 2>();
  const auto iterations = std::exchange(unread_, {});
  for (std::int64_t i = 0; i < std::ssize(iterations); ++i)
    report(iterations[static_cast<std::size_t>(i)], values[i].data());
}

void DelayedMetrics::report(const Iteration& iteration, const double* numbers) {
  const bool fine_tuned = iteration.phase == kFineTune;
  const double loss_generator = numbers[0], loss_student = numbers[3];
  const bool generator_skipped = numbers[2] != 0, student_skipped = numbers[5] != 0;
  if (generator_skipped || student_skipped) count_skipped(iteration);
  const bool last = iteration.share > kLastPart;
  const bool generated = iteration.generator.defined();
  if (last && generated && !generator_skipped) {
    tally_.loss_generator += loss_generator;
    ++tally_.losses_generator;
  }
  if (last && fine_tuned && !student_skipped) {
    tally_.loss_student += loss_student;
    ++tally_.losses_student;
  }
  Progress progress{
      std::string(iteration.phase), iteration.done, iteration.total, phase_begin_.seconds(), {}};
  if (generated) {
    progress.metrics.emplace_back("loss_generator", loss_generator);
    progress.details.emplace_back("bn_statistics", numbers[1]);
  }
  progress.details.emplace_back("rate_factor", iteration.factor);
  if (fine_tuned) {
    agreement_ = kDecay * agreement_ + numbers[4];
    agreement_weight_ = kDecay * agreement_weight_ + 1;
    progress.metrics.emplace_back("loss_student", loss_student);
    progress.metrics.emplace_back("agreement", agreement_ / agreement_weight_);
  }
  observer_.on_progress(progress);
}

void DelayedMetrics::count_skipped(const Iteration& iteration) {
  ++tally_.skipped;
  const double limit = options_.max_skipped * static_cast<double>(iteration.total);
  if (static_cast<double>(tally_.skipped) <= limit) return;
  throw Error(
      ErrorCode::numeric_failure,
      std::to_string(tally_.skipped) + " of " + std::to_string(iteration.done) +
          " steps had gradients that are not finite, more than finetune.max_skipped = " +
          std::to_string(options_.max_skipped) +
          " of the run; lower finetune.crossing_rate, finetune.affine_lr or generate.lr, or "
          "set finetune.validation_checks=40 and finetune.backtracking=0.3, with which the "
          "student goes back to its best state. The last checkpoint is kept");
}

}  // namespace zsq::train
