// SPDX-License-Identifier: Apache-2.0
// Losses and agreement of the iterations, read from the device several iterations at a time: each
// reading waits for a GPU. What is read goes into the tally and to the observer.
#pragma once
#include <functional>
#include <string_view>
#include <utility>
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
  // Reads after every `read_every` iterations; the numbers of all may be read after join().
  DelayedMetrics(
      const TrainOptions& options, std::ptrdiff_t read_every, Tally& tally, Observer& observer,
      std::function<void()> join = [] {})
      : options_(options),
        read_every_(read_every),
        tally_(tally),
        observer_(observer),
        join_(std::move(join)) {}

  // Copies, in f64, on the CPU if every iteration is read.
  at::Tensor numbers_of(const Batch& batch) const;  // [3]: loss, BNS term, whether it was skipped
  at::Tensor numbers_of(const StudentStep& student) const;  // [3]: loss, agreement, skipped

  // Of the iteration that `schedule` has just counted, whose rates were multiplied by `factor`;
  // `generator` or `student` is undefined if there was no such step. Error(numeric_failure) if too
  // many steps were skipped.
  void add(std::string_view phase, const Schedule& schedule, double factor,
           const at::Tensor& generator, const at::Tensor& student = {});
  // All that were added and not read yet.
  void read();
  // From now on, seconds of a phase count from here.
  void begin_phase() { phase_begin_ = Stopwatch(); }

 private:
  struct Iteration {
    std::string_view phase;
    std::int64_t done, total;
    double share, factor;
    at::Tensor generator, student;
  };
  at::Tensor copy_of(std::vector<at::Tensor> numbers) const;
  void report(const Iteration& iteration, const double* numbers);
  void count_skipped(const Iteration& iteration);

  const TrainOptions& options_;
  const std::ptrdiff_t read_every_;
  Tally& tally_;
  Observer& observer_;
  std::function<void()> join_;
  std::vector<Iteration> unread_;
  Stopwatch phase_begin_;
  double agreement_ = 0, agreement_weight_ = 0;  // a decaying mean, for display
};

}  // namespace zsq::train
