// SPDX-License-Identifier: Apache-2.0
// Writes down what the stages of a run report, while they run, and hands everything on to another
// observer. In the output folder:
//   history.jsonl                      pipeline/report/history.h
//   samples/<iteration>.png            images of the generator
//   events.out.tfevents.<seconds>.zsq  the same for TensorBoard
// A phase has at most about a thousand records. What cannot be written is a warning, no error.
#pragma once
#include <fstream>
#include <map>

#include "core/observer.h"
#include "eval/image.h"
#include "pipeline/report/history.h"

namespace zsq::pipeline {

class Recorder : public Observer {
 public:
  explicit Recorder(Observer& next) : next_(next) {}

  // Before the first stage. Of an earlier process only what `finished` holds stays.
  void open(const std::filesystem::path& folder, const Finished& finished);
  // After the last one.
  void close() { folder_.clear(); }
  void add_samples(std::int64_t iteration, const eval::Image& image);

  void on_progress(const Progress& progress) override;
  void on_measurement(const Progress& progress) override;
  void on_stage(std::int64_t number, const std::string& name) override;
  void on_message(LogLevel level, const std::string& message) override {
    next_.on_message(level, message);
  }
  bool stop_requested() override { return next_.stop_requested(); }

 private:
  void note(const Progress& progress);
  void append(const HistoryRecord& record);
  void rewrite(const std::vector<HistoryRecord>& records);
  void drop(const HistoryRecord& from);
  void give_up(const std::string& why);

  Observer& next_;
  std::filesystem::path folder_;  // empty: nothing is recorded
  std::ofstream history_, events_;
  std::int64_t stage_ = 0;
  std::map<std::pair<std::int64_t, std::string>, std::int64_t> last_;  // step, by stage and phase
};

}  // namespace zsq::pipeline
