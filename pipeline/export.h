// SPDX-License-Identifier: Apache-2.0
// The model of a finished run as a file for another runtime.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/observer.h"
#include "quant/options.h"

namespace zsq {

struct ExportRunOptions {
  Target target = Target::onnxruntime;
  std::filesystem::path output;  // empty: model.<target>.<onnx, param, ...> in the run's folder
  // The float network of the run, of which the structure is taken; empty: where it was then.
  std::filesystem::path model;
};

struct ExportedLayer {
  std::string name, op;
  std::string executes_as;  // "int8", "int8, slow" or "float"
  std::string speed;        // "fast", "slower than float" or "as float"
  std::string reason;       // the rule of the target that decides
};

struct ExportedRun {
  std::string run, target, file;
  std::int64_t bytes = 0;
  double integer_share = 0;  // of the layers
  std::vector<ExportedLayer> layers;
};

// `folder` is the output folder of a finished `zsq quantize`. Codes, scales and zero points are
// those of its model.safetensors; nothing is calibrated or rounded again. Writes the file whole or
// not at all. Error(unsupported_model) lists each layer and tensor that the target cannot hold
// without changing values, and the command that quantizes for this target; Error(bad_input) if the
// run is not finished, lacks model.safetensors, or if the float network is not where it was or
// another one.
ExportedRun export_run(const std::filesystem::path& folder, const ExportRunOptions& options,
                       Observer* observer = nullptr);

std::string to_json(const ExportedRun& exported);  // one line

}  // namespace zsq
