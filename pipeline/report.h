// SPDX-License-Identifier: Apache-2.0
// What finished runs of `zsq quantize` tell, together.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"

namespace zsq {

struct RunsReport {
  std::string html;  // one page that needs no network
  std::string text;  // tables for a terminal
  std::string json;
};

// `folders`: output folders. Of one: the page that the run wrote, from its files as they are now.
// Of several: their results, curves, layers and settings that differ side by side. The page is
// written to `output`, if that is given. Error(bad_input) names a folder that holds no finished run
// of this version; Error(usage) if there is none.
RunsReport report_runs(const std::vector<std::filesystem::path>& folders,
                       const std::filesystem::path& output = {});

}  // namespace zsq
