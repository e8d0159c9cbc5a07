// SPDX-License-Identifier: Apache-2.0
#include "train/schedule.h"

#include <algorithm>
#include <cmath>

namespace zsq::train {

double rate_factor(const TrainOptions& options, double share) {
  const auto passed = std::count_if(options.milestones.begin(), options.milestones.end(),
                                    [&](double milestone) { return share >= milestone; });
  return std::pow(options.decay, static_cast<double>(passed));
}

double seconds_of_checks(const TrainOptions& options, std::int64_t images, double student_step) {
  if (options.validation_checks == 0) return 0;
  const auto passes = static_cast<double>((options.validation_checks + 1) * images);
  return student_step / 3 * passes / static_cast<double>(options.batch_size);
}

void IterationTime::rehearsed(double seconds) {
  rehearsed_ = seconds;
  recent_.fill(seconds);
}

void IterationTime::took(double seconds) {
  recent_[oldest_] = seconds;
  oldest_ = (oldest_ + 1) % recent_.size();
}

double IterationTime::now() const {
  auto sorted = recent_;
  std::sort(sorted.begin(), sorted.end());
  return sorted[sorted.size() / 2];
}

void Schedule::rehearsed(double warmup, double finetune) {
  warmup_.rehearsed(warmup);
  finetune_.rehearsed(finetune);
}

void Schedule::reserve(double seconds) {
  reserved_ = took_ = expected_ = seconds;
  schedule_ = finetune_.slowdown();
}

bool Schedule::next(double elapsed) {
  left_ = options_.iterations - done_;
  if (budget_ <= 0) return left_ > 0;
  const double seconds = std::max(0.0, budget_ - elapsed - reserved());
  // Of n iterations left, n (w - share) / (1 - share) are still warm-up.
  const double w = options_.warmup, cost = finetune_.now();
  const double fits = warming_up()
                          ? seconds * (1 - share_) / ((w - share_) * warmup_.now() + (1 - w) * cost)
                          : seconds / cost;
  if (fits < static_cast<double>(left_)) left_ = static_cast<std::int64_t>(fits);
  return left_ > 0;
}

void Schedule::warmup_took(double seconds) {
  warmup_.took(seconds);
  finetune_.scale(warmup_.slowdown());
  advance(seconds, warmup_.in_rehearsal());
}

void Schedule::finetune_took(double seconds) {
  finetune_.took(seconds);
  advance(seconds, finetune_.in_rehearsal());
}

void Schedule::advance(double seconds, double in_rehearsal) {
  if (reserved_ > 0) {
    const double kept = std::exp(-seconds / reserved_);
    took_ = kept * took_ + seconds;
    expected_ = kept * expected_ + in_rehearsal * schedule_;
  }
  if (budget_ > 0) share_ += (1 - share_) / static_cast<double>(left_);
  ++done_;
  --left_;
  share_ = std::max(share_, static_cast<double>(done_) / static_cast<double>(options_.iterations));
}

}  // namespace zsq::train
