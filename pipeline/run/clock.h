// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <limits>

#include "core/stopwatch.h"

namespace zsq::pipeline {

// The time of a run and what is left of its budget. A run that is resumed has the time of the
// processes before it added.
class RunClock {
 public:
  explicit RunClock(double budget = 0) : budget_(budget) {}

  double seconds() const { return earlier_ + since_.seconds(); }
  void add_earlier(double seconds) { earlier_ += seconds; }

  bool has_budget() const { return budget_ > 0; }
  // Seconds of the budget that are left, at least `least`; infinite without a budget.
  double left(double least = 0) const {
    return has_budget() ? std::max(least, budget_ - seconds())
                        : std::numeric_limits<double>::infinity();
  }

 private:
  double budget_;  // seconds; 0: none
  double earlier_ = 0;
  Stopwatch since_;
};

}  // namespace zsq::pipeline
