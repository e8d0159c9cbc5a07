// SPDX-License-Identifier: Apache-2.0
// An exported ONNX file as x86 processors without VNNI compute it (quant/pair_saturation.h).
#pragma once
#include <filesystem>

#include "core/observer.h"
#include "models/graph.h"
#include "pipeline/arithmetic.h"
#include "pipeline/images/held_out.h"
#include "quant/pair_saturation.h"

namespace zsq::pipeline {

// The model that load_any() read from `path`, with saturation where a layer can saturate.
// Error(usage) if it is no ONNX file with int8 weights.
quant::SaturatingNetwork saturating_network(const models::Model& model,
                                            const std::filesystem::path& path);

// Of the file that was exported of the student; nothing where its target's runtimes do not saturate
// or `file` is not there.
std::optional<SaturationResult> measure_saturation(const quant::Student& student,
                                                   const std::filesystem::path& file,
                                                   const std::vector<HeldOutImages>& held_out);
// Arithmetic::exact leaves the model as it is. The observer is told how many layers can saturate.
void use_arithmetic(Arithmetic arithmetic, const std::filesystem::path& path, models::Model& model,
                    Observer& observer);

}  // namespace zsq::pipeline
