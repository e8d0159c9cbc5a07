// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "core/observer.h"
#include "models/graph.h"
#include "pipeline/evaluate.h"

namespace zsq::pipeline {

// The model in model.source_path, quantized to W8A8 by the recipe `instant` in a folder that is
// removed again. Errors as quantize().
models::Model int8_model(const models::Model& model, const EvaluateOptions& options,
                         Observer& observer);

}  // namespace zsq::pipeline
