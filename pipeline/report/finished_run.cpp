// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report/finished_run.h"

#include "core/error.h"
#include "formats/json.h"
#include "pipeline/report/latency.h"
#include "pipeline/version.h"

namespace zsq::pipeline {
namespace {

std::string wrote(const Json& report) {
  const std::string other = text_in(report, "tool_version");
  return other.empty() || other == version() ? "" : "; version " + other + " wrote it";
}

Json read_latency(const std::filesystem::path& folder) {
  const auto path = folder / kLatencyFile;
  Json latency = formats::read_json<Json>(path);
  if (!latency.is_object())
    throw Error(ErrorCode::bad_input, path.string() +
                                          ": is not what `scripts/bench_runtimes.py --record` "
                                          "writes; measure again, or remove it");
  return latency;
}

}  // namespace

Json read_report(const std::filesystem::path& folder) {
  Json report = formats::read_json<Json>(folder / "report.json");
  const auto holds = [&](const char* key, bool (Json::*is_type)() const noexcept) {
    return report.is_object() && report.contains(key) && (report[key].*is_type)();
  };
  bool whole = holds("size", &Json::is_object);
  for (const char* key : {"source_sha256", "model", "scheme", "recipe"})
    whole = whole && holds(key, &Json::is_string);
  if (!whole)
    throw Error(ErrorCode::bad_input, (folder / "report.json").string() +
                                          ": is not the report of a finished `zsq quantize` of "
                                          "version " +
                                          version() + wrote(report));
  return report;
}

FinishedRun read_run(const std::filesystem::path& folder) {
  FinishedRun run{.folder = folder, .report = read_report(folder), .history = read_history(folder)};
  if (std::filesystem::exists(folder / kLatencyFile)) run.latency = read_latency(folder);
  const auto resolved = folder / "resolved.yaml";
  if (!std::filesystem::exists(resolved)) return run;
  run.settings = describe_settings(load_recipe(resolved.string()));
  try {
    run.recipe_settings = describe_settings(load_recipe(text_in(run.report, "recipe")));
  } catch (const Error&) {  // a file that has gone, or changed to what is no recipe
    run.recipe_settings.clear();
  }
  return run;
}

}  // namespace zsq::pipeline
