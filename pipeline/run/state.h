// SPDX-License-Identifier: Apache-2.0
// What a run has done so far, on disk: so that a run that is stopped, by a signal or by a power
// cut, goes on with what it had. One safetensors file, written whole or not at all. Fine-tuning has
// a checkpoint of its own beside it (train/checkpoint.h).
#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/results.h"
#include "quant/student.h"
#include "recipes/recipe.h"

namespace zsq::pipeline {

// Every setting that decides the result, by key; what the machine adds to it too (threads, device,
// the content of a bank): sums in another order give other bits.
using Identity = std::map<std::string, std::string>;
Identity identity_of(const Recipe& recipe);

struct RunState {
  std::vector<StageResult> stages;  // the plan, with the results of the stages that are finished
  std::int64_t finished = 0;        // stages
  std::int64_t parts = 0;           // blocks or layers of the stage under way that are finished
  std::vector<BlockResult> blocks;  // of block reconstruction
  double seconds = 0;               // until it was written
  models::ParameterStore start;     // the student's before the stage under way
  models::ParameterStore now;       // with these parts finished; empty if parts == 0
};

void save(const std::filesystem::path& path, const RunState& state, const Identity& identity);

// Tensors go to `device`. Error(bad_input): damaged. Error(usage) names the first setting that
// differs from `identity`.
RunState load_run_state(const std::filesystem::path& path, const Identity& identity,
                        at::Device device);

// Makes `parameters` the student's. Layers whose biases were corrected have parameters of their
// own, which the student's nodes then name.
void restore(quant::Student& student, const models::ParameterStore& parameters);

}  // namespace zsq::pipeline
