// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report/history.h"

#include <cmath>
#include <exception>
#include <fstream>

#include "formats/json.h"
#include "pipeline/report/json.h"

namespace zsq::pipeline {
namespace {

HistoryRecord record_of(const Json& json) {
  HistoryRecord record{.stage = json.at("stage"),
                       .phase = json.at("phase"),
                       .step = json.at("step"),
                       .total = json.at("total"),
                       .time = json.at("time"),
                       .image = json.value("image", "")};
  if (json.contains("metrics"))
    for (const auto& [name, value] : json["metrics"].items())
      record.metrics.emplace_back(name, value.get<double>());
  return record;
}

}  // namespace

std::string to_line(const HistoryRecord& record) {
  Json json{{"stage", record.stage},
            {"phase", record.phase},
            {"step", record.step},
            {"total", record.total},
            {"time", std::round(record.time * 1e3) / 1e3}};
  for (const auto& [name, value] : record.metrics) json["metrics"][name] = value;
  if (!record.image.empty()) json["image"] = record.image;
  return dump(json) + "\n";
}

std::filesystem::path image_file(const std::filesystem::path& folder, const HistoryRecord& record) {
  return folder / kSamplesPhase / std::filesystem::path(record.image).filename();
}

std::vector<HistoryRecord> read_history(const std::filesystem::path& folder) {
  std::vector<HistoryRecord> records;
  std::ifstream file(folder / kHistoryFile);
  for (std::string line; std::getline(file, line);) {
    if (file.eof()) break;  // without its end
    try {
      formats::require_shallow_json(line);
      records.push_back(record_of(Json::parse(line)));
    } catch (const std::exception&) {  // no JSON, or no record
      continue;
    }
  }
  return records;
}

bool is_finished(const HistoryRecord& record, const Finished& finished) {
  if (record.stage != finished.stages + 1) return record.stage <= finished.stages;
  return finished.iterations ? record.step <= *finished.iterations : finished.parts > 0;
}

}  // namespace zsq::pipeline
