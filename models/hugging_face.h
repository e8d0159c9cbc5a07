// SPDX-License-Identifier: Apache-2.0
// A folder of the Hugging Face hub as a network: timm's networks by the name of their architecture,
// transformers' ResNetForImageClassification by its depths.
#pragma once
#include "formats/hugging_face.h"
#include "models/load.h"

namespace zsq::models {

// Error(unsupported_model) names an architecture that is not built in; Error(bad_input) tensors
// that do not fit it, or another number of classes than the configuration says.
Model build_hugging_face(const formats::HuggingFaceFolder& folder, const LoadOptions& options);

}  // namespace zsq::models
