// SPDX-License-Identifier: Apache-2.0
// When the rates drop, how long the warm-up is, and how many iterations fit into a time budget.
#pragma once
#include <array>
#include <cstdint>

#include "train/options.h"

namespace zsq::train {

// decay^(number of milestones at or before `share`); multiplies learning rates and crossing rate.
double rate_factor(const TrainOptions& options, double share);

// Of options.validation_checks and the one at the start, on so many images: each is a forward pass
// of the student, about a third of its step.
double seconds_of_checks(const TrainOptions& options, std::int64_t images, double student_step);

// Seconds of one kind of iteration, as the median of the last five: one that was held up does not
// change it, a slower machine does within three.
class IterationTime {
 public:
  void rehearsed(double seconds);
  void took(double seconds);
  // As if the last five had taken `factor` times what they took in rehearsal.
  void scale(double factor) { recent_.fill(factor * rehearsed_); }

  double in_rehearsal() const { return rehearsed_; }
  double now() const;
  double slowdown() const { return rehearsed_ > 0 ? now() / rehearsed_ : 1; }

 private:
  double rehearsed_ = 0;
  std::array<double, 5> recent_{};
  std::size_t oldest_ = 0;
};

// Where in its schedule the run is, and how many iterations are left. The schedule is made of
// shares: each iteration takes an equal part of what is left of it, so the share reaches 1 with the
// last one and never moves back. Without a budget that is iterations done / options.iterations.
// With one, iterations are at most options.iterations; how many are left is computed again before
// each, from the seconds that the recent ones took. One that meets a busy machine takes a larger
// part of the schedule, as of the time.
class Schedule {
 public:
  // `budget`: seconds for the run and for what reserve() names; 0: none. `done` and `share` are
  // those of a run that is resumed.
  Schedule(const TrainOptions& options, double budget, std::int64_t done = 0, double share = 0)
      : options_(options), budget_(budget), done_(done), share_(share) {}

  // With a budget, before all else: seconds of an iteration of either kind.
  void rehearsed(double warmup, double finetune);
  // Sets aside seconds, at today's schedule, for what comes besides iterations. The reserve grows
  // where iterations get slower after this call, by what they did over about as long a time: a
  // short disturbance must not end the run.
  void reserve(double seconds);

  // Plans from `elapsed` seconds after the start; false where no iteration is left.
  bool next(double elapsed);
  bool warming_up() const { return share_ < options_.warmup; }
  void warmup_took(double seconds);
  void finetune_took(double seconds);

  std::int64_t done() const { return done_; }
  std::int64_t total() const { return done_ + left_; }  // by the last plan
  double share() const { return share_; }

 private:
  double reserved() const { return reserved_ > 0 ? reserved_ * took_ / expected_ : 0; }
  void advance(double seconds, double in_rehearsal);

  TrainOptions options_;
  double budget_;
  std::int64_t done_, left_ = 0;
  double share_;
  IterationTime warmup_, finetune_;
  double reserved_ = 0, schedule_ = 1;  // seconds; slowdown when they were set aside
  // Of the iterations since then, fading with the time constant reserved_: seconds they took, and
  // would have taken at that schedule.
  double took_ = 0, expected_ = 0;
};

}  // namespace zsq::train
