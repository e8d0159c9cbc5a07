// SPDX-License-Identifier: Apache-2.0
// The analyses of the papers on any network: what training does to weights, and where its images
// lie. Each trains a student by a recipe and looks at it on the way or afterwards.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/observer.h"
#include "recipes/recipe.h"

namespace zsq {

struct AnalysisName {
  std::string name, about;
};
std::vector<AnalysisName> analyses();

struct AnalyzeOptions {
  Recipe recipe = load_recipe("analyze");  // data.eval_data: real images for those that show some
  std::int64_t images = 256;               // that are looked at
  std::int64_t looks = 20;                 // moments of a training, or epochs
};

struct AnalyzeReport {
  std::string name = {}, model = {}, source_sha256 = {}, recipe = {}, scheme = {};
  std::string tool_version = {};
  std::int64_t seed = 0, iterations = 0;
  std::vector<std::pair<std::string, double>> figures = {};  // what the picture says, in numbers
  std::vector<std::filesystem::path> files = {};             // <name>.csv, <name>.svg
  double seconds = 0;
};

// Error(usage) for a name that is none of analyses(); the files appear at the end.
AnalyzeReport analyze(const std::string& name, const std::filesystem::path& model,
                      const AnalyzeOptions& options, const std::filesystem::path& output,
                      Observer* observer = nullptr);

std::string to_json(const AnalyzeReport& report);

}  // namespace zsq
