// SPDX-License-Identifier: Apache-2.0
// Whether a network computes the same, operator by operator, at every height and width.
#pragma once
#include "models/graph.h"

namespace zsq::models::onnx {

// `a` and `b`: one file at two image sizes. True where no node and no constant depends on the size,
// so that an exported file may leave it as open as the network's own does.
bool is_same_at_any_size(const Model& a, const Model& b);

}  // namespace zsq::models::onnx
