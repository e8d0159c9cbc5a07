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
#include "pipeline/arithmetic.h"
#include "recipes/options.h"

namespace zsq {

struct RunOptions {
  ModelSettings model;
  ProcessOptions process;
  PreprocessingOptions preprocessing;  // of images, where the model's file does not record it
  std::filesystem::path classes;       // text file, one name per line; empty: numbers only
  std::int64_t top = 1;                // classes per image
  bool allow_rounding = true;          // when compared, see CompareReport
  Arithmetic arithmetic = Arithmetic::exact;  // of an exported ONNX file
};

struct ClassScore {
  std::int64_t index = 0;
  std::string name;  // empty without a file of names
  // Probability: softmax of logits, sigmoid of scores; the number itself where outputs are values.
  double score = 0;
};

struct ImageClasses {
  std::filesystem::path image;
  std::vector<ClassScore> classes;  // best first
};

std::vector<ImageClasses> classify(const std::filesystem::path& model,
                                   const std::vector<std::filesystem::path>& images,
                                   const RunOptions& options, Observer* observer = nullptr);

// Runs the array `input` of an npz file, in the layout of the model's file, and compares what the
// file gives with its array `output`; several outputs with arrays of their names, and the worst is
// told. relative_error = max |y - output| / max |output|, compared
// with `tolerance`. A deep network in float may lie further from another program's result by
// rounding alone: beyond the tolerance the network runs in double as well, and by_rounding says
// that the array lies about as far from that as y does (models/rounding.h). The observer is told
// what is not as the model's file says.
struct CompareReport {
  std::vector<std::int64_t> shape;
  double relative_error = 0, tolerance = 0;
  double rounding = 0;  // max |y - double| / max |double|, if it was measured
  bool equal = false, by_rounding = false;
};
CompareReport compare_with_arrays(const std::filesystem::path& model,
                                  const std::filesystem::path& npz, const RunOptions& options,
                                  double tolerance = 1e-4, Observer* observer = nullptr);

std::string to_json(const std::vector<ImageClasses>& results);
std::string to_json(const CompareReport& report);

}  // namespace zsq
