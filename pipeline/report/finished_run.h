// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>

#include "pipeline/report/json.h"

namespace zsq::pipeline {

// report.json of an output folder; Error(bad_input) if it is not that of a finished run.
Json read_report(const std::filesystem::path& folder);

}  // namespace zsq::pipeline
