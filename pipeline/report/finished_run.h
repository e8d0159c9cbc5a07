// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>

#include "pipeline/report/history.h"
#include "pipeline/report/json.h"
#include "recipes/recipe.h"

namespace zsq::pipeline {

// report.json of an output folder; Error(bad_input) if it is not that of a finished run.
Json read_report(const std::filesystem::path& folder);

// What an output folder tells of its run.
struct FinishedRun {
  std::filesystem::path folder;  // empty: there is none
  Json report;
  Json latency = nullptr;  // pipeline/report/latency.h; null if it was not measured
  std::vector<HistoryRecord> history = {};
  std::vector<SettingHelp> settings = {};  // of resolved.yaml; empty without
  // The same ones as the recipe has them by its name; empty if there is no such recipe any more.
  std::vector<SettingHelp> recipe_settings = {};
};
FinishedRun read_run(const std::filesystem::path& folder);

}  // namespace zsq::pipeline
