// SPDX-License-Identifier: Apache-2.0
// What a run was told that its outputs mean, in the files that it writes: whoever opens one of them
// measures the outputs as the run did.
#pragma once
#include <filesystem>
#include <string>

#include "recipes/options.h"

namespace zsq::pipeline {

// Metadata of exported files: a JSON object of meanings by the outputs' names, "" for those that
// are not named. Files of runs that were told nothing do not have it.
inline constexpr const char* kOutputsRecord = "zsq.outputs";

// Empty if nothing was said.
std::string outputs_record(const ModelSettings& settings);

// Adds to settings.output what a file, or the model.onnx of a run's folder, records. What is in the
// settings already counts more, and a meaning without a name there is for all outputs.
// Error(bad_input): a record that is none.
void take_recorded_outputs(const std::filesystem::path& model, ModelSettings& settings);

}  // namespace zsq::pipeline
