// SPDX-License-Identifier: Apache-2.0
// Runs a model, float or exported by this engine: classes of image files, or a check against
// arrays.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/observer.h"
#include "eval/preprocessing_options.h"
#include "recipes/options.h"

namespace zsq {

struct RunOptions {
  ModelSettings model;
  ProcessOptions process;
  PreprocessingOptions preprocessing;  // of images, where the model's file does not record it
  std::filesystem::path classes;       // text file, one name per line; empty: numbers only
  std::int64_t top = 1;                // classes per image
};

struct ClassScore {
  std::int64_t index = 0;
  std::string name;  // empty without a file of names
  double score = 0;  // softmax probability
};

struct ImageClasses {
  std::filesystem::path image;
  std::vector<ClassScore> classes;  // best first
};

std::vector<ImageClasses> classify(const std::filesystem::path& model,
                                   const std::vector<std::filesystem::path>& images,
                                   const RunOptions& options, Observer* observer = nullptr);

// Runs the array `input` of an npz file. relative_error = max |y - output| / max |output|, compared
// with `tolerance`.
struct CompareReport {
  std::vector<std::int64_t> shape;
  double relative_error = 0, tolerance = 0;
  bool equal = false;
};
CompareReport compare_with_arrays(const std::filesystem::path& model,
                                  const std::filesystem::path& npz, const RunOptions& options,
                                  double tolerance = 1e-4);

std::string to_json(const std::vector<ImageClasses>& results);
std::string to_json(const CompareReport& report);

}  // namespace zsq
