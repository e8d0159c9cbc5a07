// SPDX-License-Identifier: Apache-2.0
// What a report says of a run besides what it measured.
#pragma once
#include "pipeline/results.h"
#include "quant/student.h"
#include "recipes/recipe.h"
#include "train/trainer.h"

namespace zsq::pipeline {

// The settings that the result depends on. added_macs: as a share of the network's.
QuantizeReport describe_run(const std::filesystem::path& model, const Recipe& recipe,
                            const std::string& sha256, double added_macs);

// Granularity, symmetry and range rule.
std::string activations_in_words(const QuantOptions& options);

// Grids and what training did to them; not yet what the target makes of the layers.
std::vector<LayerResult> describe_layers(const quant::Student& student,
                                         const train::TrainReport& trained);

// Empty without checks.
std::optional<BestCheckpointResult> describe_kept(const train::TrainReport& trained);

}  // namespace zsq::pipeline
