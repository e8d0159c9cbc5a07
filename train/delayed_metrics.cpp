// SPDX-License-Identifier: Apache-2.0
#include "train/delayed_metrics.h"

#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>

#include <utility>

#include "core/error.h"

namespace zsq::train {
namespace {

constexpr double kDecay = 0.95;     // of the displayed agreement: about the last twenty iterations
constexpr double kLastPart = 0.95;  // share of the run after which losses count in the report

}  // namespace

at::Tensor DelayedMetrics::numbers_of(const Batch& batch, const StudentStep* student) const {
  std::vector<at::Tensor> numbers{batch.loss, batch.skipped};
  if (student) numbers.insert(numbers.end(), {student->loss, student->agreement, student->skipped});
  for (auto& number : numbers) number = number.to(at::kDouble);
  while (numbers.size() < 5) numbers.push_back(at::zeros_like(numbers[0]));
  const auto all = at::stack(numbers);
  return read_every_ == 1 ? all.to(at::kCPU) : all;
}

void DelayedMetrics::add(std::string_view phase, const Pace& pace, const at::Tensor& numbers) {
  unread_.push_back({phase, pace.done(), pace.total(), pace.share(), numbers});
  if (std::ssize(unread_) >= read_every_) read();
}

void DelayedMetrics::read() {
  if (unread_.empty()) return;
  std::vector<at::Tensor> numbers;
  for (const auto& iteration : unread_) numbers.push_back(iteration.numbers);
  const auto rows = at::stack(numbers).to(at::kCPU);
  const auto values = rows.accessor<double, 2>();
  const auto iterations = std::exchange(unread_, {});
  for (std::int64_t i = 0; i < std::ssize(iterations); ++i)
    report(iterations[static_cast<std::size_t>(i)], values[i].data());
}

void DelayedMetrics::report(const Iteration& iteration, const double* numbers) {
  const bool fine_tuned = iteration.phase == kFineTune;
  const double loss_generator = numbers[0], loss_student = numbers[2];
  const bool generator_skipped = numbers[1] != 0, student_skipped = numbers[4] != 0;
  if (generator_skipped || student_skipped) count_skipped(iteration);
  const bool last = iteration.share > kLastPart;
  if (last && !generator_skipped) {
    tally_.loss_generator += loss_generator;
    ++tally_.losses_generator;
  }
  if (last && fine_tuned && !student_skipped) {
    tally_.loss_student += loss_student;
    ++tally_.losses_student;
  }
  Progress progress{std::string(iteration.phase),
                    iteration.done,
                    iteration.total,
                    phase_begin_.seconds(),
                    {{"loss_generator", loss_generator}}};
  if (fine_tuned) {
    agreement_ = kDecay * agreement_ + numbers[3];
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
  throw Error(ErrorCode::numeric_failure,
              std::to_string(tally_.skipped) + " of " + std::to_string(iteration.done) +
                  " steps had gradients that are not finite, more than finetune.max_skipped = " +
                  std::to_string(options_.max_skipped) +
                  " of the run; lower generate.lr, finetune.affine_lr or finetune.k_max. The last "
                  "checkpoint is kept");
}

}  // namespace zsq::train
