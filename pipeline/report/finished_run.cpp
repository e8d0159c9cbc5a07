// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report/finished_run.h"

#include "core/error.h"
#include "formats/atomic_file.h"

namespace zsq::pipeline {

Json read_report(const std::filesystem::path& folder) {
  const auto bytes = formats::read_file(folder / "report.json");
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  Json report = Json::parse(text, text + bytes.size(), nullptr, /*allow_exceptions=*/false);
  const auto holds = [&](const char* key, bool (Json::*is_type)() const noexcept) {
    return report.is_object() && report.contains(key) && (report[key].*is_type)();
  };
  bool whole = holds("size", &Json::is_object);
  for (const char* key : {"source_sha256", "model", "scheme", "recipe"})
    whole = whole && holds(key, &Json::is_string);
  if (!whole)
    throw Error(ErrorCode::bad_input, (folder / "report.json").string() +
                                          ": is not the report of a finished `zsq quantize`");
  return report;
}

}  // namespace zsq::pipeline
