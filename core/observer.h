// SPDX-License-Identifier: Apache-2.0
// How a long job reports: loops never print, they call an observer. Any method may be left out.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace zsq {

struct Progress {
  std::string phase;  // "warm-up", "fine-tune", "evaluate", ...
  std::int64_t step = 0, total = 0;
  double seconds = 0;                                   // since the phase began
  std::vector<std::pair<std::string, double>> metrics;  // loss, agreement, ... in display order
  std::vector<std::pair<std::string, double>> details = {};  // for curves, not for a line of text
};

enum class LogLevel { debug, info, warning };

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_progress(const Progress&) {}
  // A measurement outside the iteration count: a validation check, the result of a stage.
  virtual void on_measurement(const Progress&) {}
  // Stage `number`, from 1, of a run begins.
  virtual void on_stage(std::int64_t /*number*/, const std::string& /*name*/) {}
  virtual void on_message(LogLevel, const std::string&) {}
  // Asked once per iteration; true ends the job at the next safe point, with its state saved.
  virtual bool stop_requested() { return false; }
};

}  // namespace zsq
