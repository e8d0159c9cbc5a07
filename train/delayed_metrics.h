// SPDX-License-Identifier: Apache-2.0
// Losses and agreement of the iterations, read from the device several iterations at a time: each
// reading waits for a GPU. What is read goes into the tally and to the observer.
#pragma once
#include <string_view>
#include <vector>

#include "core/observer.h"
#include "core/stopwatch.h"
#include "train/checkpoint.h"
#include "train/schedule.h"
#include "train/step.h"

namespace zsq::train {

inline constexpr std::string_view kWarmUp = "warm-up", kFineTune = "fine-tune";

class DelayedMetrics {
 public:
  // Reads after every `read_every` iterations.
  DelayedMetrics(const TrainOptions& options, std::ptrdiff_t read_every, Tally& tally,
                 Observer& observer)
      : options_(options), read_every_(read_every), tally_(tally), observer_(observer) {}

  // f64 [5]: the generator's loss, whether its step was skipped, the student's loss, agreement,
  // whether its step was skipped. On the CPU if every iteration is read; `student` may be null.
  at::Tensor numbers_of(const Batch& batch, const StudentStep* student) const;

  // Of the iteration that `pace` has just counted. Error(numeric_failure) if too many steps were
  // skipped.
  void add(std::string_view phase, const Pace& pace, const at::Tensor& numbers);
  // All that were added and not read yet.
  void read();
  // From now on, seconds of a phase count from here.
  void begin_phase() { phase_begin_ = Stopwatch(); }

 private:
  struct Iteration {
    std::string_view phase;
    std::int64_t done, total;
    double share;
    at::Tensor numbers;
  };
  void report(const Iteration& iteration, const double* numbers);
  void count_skipped(const Iteration& iteration);

  const TrainOptions& options_;
  const std::ptrdiff_t read_every_;
  Tally& tally_;
  Observer& observer_;
  std::vector<Iteration> unread_;
  Stopwatch phase_begin_;
  double agreement_ = 0, agreement_weight_ = 0;  // a decaying mean, for display
};

}  // namespace zsq::train
