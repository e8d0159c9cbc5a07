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

std::int64_t warmup_iterations(const TrainOptions& options, std::int64_t total) {
  return static_cast<std::int64_t>(std::ceil(options.warmup * static_cast<double>(total)));
}

std::int64_t Pace::total(std::int64_t done, double elapsed) const {
  if (budget_ <= 0 || finetune_seconds_ == 0) return options_.iterations;
  const double left = std::max(0.0, budget_ - elapsed - reserved_);
  const double warmup_cost = warmup_seconds_ > 0 ? warmup_seconds_ : finetune_seconds_;
  // All that is left goes to fine-tuning, unless that would make the part already done less than
  // the warm-up's share: then left = (w total - done) * warmup_cost + (1 - w) total * finetune
  // cost.
  const double count = static_cast<double>(done);
  double total = count + left / finetune_seconds_;
  if (options_.warmup * total > count) {
    total = (left + count * warmup_cost) /
            (options_.warmup * warmup_cost + (1 - options_.warmup) * finetune_seconds_);
  }
  return std::min(options_.iterations, static_cast<std::int64_t>(total));
}

}  // namespace zsq::train
