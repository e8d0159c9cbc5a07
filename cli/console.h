// SPDX-License-Identifier: Apache-2.0
// Progress and messages on stderr: a bar on a terminal, else a line every few per cent; and
// signals.
#pragma once
#include <chrono>
#include <string>

#include "cli/flags.h"
#include "core/observer.h"

namespace zsq::cli {

class Console : public Observer {
 public:
  // From here on SIGINT and SIGTERM ask the job to stop with its state saved. A second SIGINT ends
  // the program; SIGTERM may come again, as cluster managers send it to every process of a job and
  // `zsq reproduce` once more to its cells.
  explicit Console(const Flags& flags);

  void on_progress(const Progress& progress) override;
  void on_message(LogLevel level, const std::string& message) override;
  bool stop_requested() override;

 private:
  using Clock = std::chrono::steady_clock;

  std::string state_text(const Progress& progress) const;
  void draw_bar(const Progress& progress);
  void clear_bar();

  bool quiet_, terminal_;
  LogLevel level_;
  bool bar_drawn_ = false;
  Clock::time_point last_drawn_{};
  Progress first_;  // of the phase
  std::int64_t last_step_ = 0;
  std::int64_t next_line_ = 0;  // step at which the next plain line is due
};

}  // namespace zsq::cli
