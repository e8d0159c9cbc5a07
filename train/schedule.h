// SPDX-License-Identifier: Apache-2.0
// When the rates drop, how long the warm-up is, and how many iterations fit into a time budget.
#pragma once
#include <cstdint>

#include "train/options.h"

namespace zsq::train {

// decay^(number of milestones at or before `share`); multiplies learning rates and crossing rate.
double rate_factor(const TrainOptions& options, double share);

// ceil(warmup * total).
std::int64_t warmup_iterations(const TrainOptions& options, std::int64_t total);

// The length of the run. Without a budget it is options.iterations. With one it is planned anew at
// each iteration from the seconds that the recent ones took, so that the run ends inside the budget
// whatever the machine does meanwhile; the schedule, made of shares, stretches with it.
class Pace {
 public:
  Pace(const TrainOptions& options, double budget) : options_(options), budget_(budget) {}

  void warmup_took(double seconds) { warmup_seconds_ = recent(warmup_seconds_, seconds); }
  void finetune_took(double seconds) { finetune_seconds_ = recent(finetune_seconds_, seconds); }
  // Seconds set aside for what happens once between warm-up and fine-tuning; 0 when it is done.
  void reserve(double seconds) { reserved_ = seconds; }

  // Iterations of the whole run, `done` of which took `elapsed` seconds.
  std::int64_t total(std::int64_t done, double elapsed) const;

 private:
  // A mean over the last few, so that one slow iteration does not change the plan much.
  static double recent(double mean, double seconds) {
    return mean == 0 ? seconds : 0.8 * mean + 0.2 * seconds;
  }
  TrainOptions options_;
  double budget_;
  double warmup_seconds_ = 0, finetune_seconds_ = 0, reserved_ = 0;
};

}  // namespace zsq::train
