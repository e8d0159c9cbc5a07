// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report/recorder.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/error.h"
#include "formats/atomic_file.h"
#include "formats/tfevents.h"
#include "pipeline/session/format.h"

namespace zsq::pipeline {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kRecordsPerPhase = 1000;
constexpr const char *kEventsBegin = "events.out.tfevents.", *kEventsEnd = ".zsq";

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string event_of(const HistoryRecord& record, const fs::path& folder) {
  if (!record.image.empty())
    return formats::image_event(record.time, record.step, record.phase,
                                formats::read_text(image_file(folder, record)));
  auto by_tag = record.metrics;
  for (auto& [tag, value] : by_tag) tag.insert(0, record.phase + "/");
  return formats::scalars_event(record.time, record.step, by_tag);
}

std::vector<fs::path> files_in(const fs::path& folder, const std::string& begin,
                               const std::string& end) {
  std::vector<fs::path> files;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(begin) && name.ends_with(end)) files.push_back(entry.path());
  }
  return files;
}

}  // namespace

void Recorder::open(const fs::path& folder, const Finished& finished) {
  folder_ = folder;
  auto records = read_history(folder);
  std::erase_if(records, [&](const HistoryRecord& record) {
    return !is_finished(record, finished) ||
           (!record.image.empty() && !fs::exists(image_file(folder, record)));
  });
  try {
    for (const fs::path& file : files_in(folder / kSamplesPhase, "", ".png"))
      if (std::none_of(records.begin(), records.end(), [&](const HistoryRecord& record) {
            return !record.image.empty() && image_file(folder, record) == file;
          }))
        fs::remove(file);
    rewrite(records);
  } catch (const std::exception& error) {
    give_up(error.what());
  }
}

void Recorder::rewrite(const std::vector<HistoryRecord>& records) {
  std::string history, events = formats::version_event(now());
  last_.clear();
  for (const HistoryRecord& record : records) {
    history += to_line(record);
    events += event_of(record, folder_);
    last_[{record.stage, record.phase}] = record.step;
  }
  for (const fs::path& file : files_in(folder_, kEventsBegin, kEventsEnd)) fs::remove(file);
  const auto seconds = static_cast<std::int64_t>(now());
  const fs::path history_file = folder_ / kHistoryFile,
                 events_file = folder_ / (kEventsBegin + std::to_string(seconds) + kEventsEnd);
  formats::write_atomically(history_file, std::string_view(history));
  formats::write_atomically(events_file, std::string_view(events));
  history_ = std::ofstream(history_file, std::ios::app | std::ios::binary);
  events_ = std::ofstream(events_file, std::ios::app | std::ios::binary);
}

// What is done again replaces what was done after the last checkpoint.
void Recorder::drop(const HistoryRecord& from) {
  auto records = read_history(folder_);
  std::erase_if(records, [&](const HistoryRecord& record) {
    return record.stage == from.stage && record.phase == from.phase && record.step >= from.step;
  });
  rewrite(records);
}

void Recorder::append(const HistoryRecord& record) {
  try {
    const auto last = last_.find({record.stage, record.phase});
    if (last != last_.end() && last->second >= record.step) drop(record);
    last_[{record.stage, record.phase}] = record.step;
    history_ << to_line(record) << std::flush;  // in one call of the system, so a line is whole
    events_ << event_of(record, folder_) << std::flush;
  } catch (const std::exception& error) {
    return give_up(error.what());
  }
  if (!history_ || !events_) give_up("cannot write to '" + folder_.string() + "'");
}

void Recorder::give_up(const std::string& why) {
  next_.on_message(LogLevel::warning, "the run is no longer recorded for its curves: " + why);
  close();
}

void Recorder::note(const Progress& progress) {
  if (folder_.empty() || stage_ == 0) return;
  HistoryRecord record{stage_, progress.phase, progress.step, progress.total, now()};
  for (const auto* metrics : {&progress.metrics, &progress.details})
    for (const auto& metric : *metrics)
      if (std::isfinite(metric.second)) record.metrics.push_back(metric);
  if (!record.metrics.empty()) append(record);
}

void Recorder::add_samples(std::int64_t iteration, const eval::Image& image) {
  if (folder_.empty() || stage_ == 0) return;
  const std::string name =
      format("%s/%07lld.png", kSamplesPhase, static_cast<long long>(iteration));
  try {
    fs::create_directories(folder_ / kSamplesPhase);
    formats::write_atomically(folder_ / name, eval::encode_png(image));
  } catch (const std::exception& error) {  // also a build without an encoder
    return next_.on_message(LogLevel::debug, std::string("no samples are kept: ") + error.what());
  }
  append({stage_, kSamplesPhase, iteration, 0, now(), {}, name});
}

void Recorder::on_progress(const Progress& progress) {
  next_.on_progress(progress);
  const auto every = std::max<std::int64_t>(1, progress.total / kRecordsPerPhase);
  if (progress.step == 1 || progress.step == progress.total || progress.step % every == 0)
    note(progress);
}

void Recorder::on_measurement(const Progress& progress) {
  next_.on_measurement(progress);
  note(progress);
}

void Recorder::on_stage(std::int64_t number, const std::string& name) {
  next_.on_stage(number, name);
  stage_ = number;
}

}  // namespace zsq::pipeline
