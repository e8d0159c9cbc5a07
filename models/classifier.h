// SPDX-License-Identifier: Apache-2.0
// The layer that makes logits of features.
#pragma once
#include "models/graph.h"

namespace zsq::models {

// f32 [classes, features]: the weight of the last linear layer or 1x1 convolution, without a
// gradient. Error(unsupported_model) if its output cannot be the logits.
at::Tensor classifier_weight(const Model& model);

}  // namespace zsq::models
