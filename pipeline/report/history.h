// SPDX-License-Identifier: Apache-2.0
// history.jsonl of an output folder: what a run reported, a JSON object in each line.
//   {"stage":1,"phase":"fine-tune","step":20,"total":400,"time":1764000000.25,
//    "metrics":{"loss_student":0.01}}
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zsq::pipeline {

inline constexpr const char* kHistoryFile = "history.jsonl";
inline constexpr const char* kSamplesPhase = "samples";  // and folder of its images

struct HistoryRecord {
  std::int64_t stage = 0;  // of the run, from 1
  std::string phase;
  std::int64_t step = 0, total = 0;
  double time = 0;                                           // seconds since 1970
  std::vector<std::pair<std::string, double>> metrics = {};  // finite
  std::string image = {};  // phase "samples": a PNG file, from the output folder
};

std::string to_line(const HistoryRecord& record);

// Always within the folder, whatever the record says.
std::filesystem::path image_file(const std::filesystem::path& folder, const HistoryRecord& record);

// Empty without a file. What is no record is left out: a process that was killed, or a power cut,
// may leave a part of the last line.
std::vector<HistoryRecord> read_history(const std::filesystem::path& folder);

// How far the checkpoint that a run continues from reaches; {}: a new run.
struct Finished {
  std::int64_t stages = 0, parts = 0;           // parts: of the stage after these
  std::optional<std::int64_t> iterations = {};  // if that stage is fine-tuning
};
// Whether the checkpoint holds what the record tells of. Of a stage that was interrupted between
// its parts all is kept until the steps come again.
bool is_finished(const HistoryRecord& record, const Finished& finished);

}  // namespace zsq::pipeline
