// SPDX-License-Identifier: Apache-2.0
// Whether a network computes the same, operator by operator, at every height and width.
#pragma once
#include <optional>

#include "models/graph.h"

namespace zsq::models::onnx {

// `at_sizes`: one file at several image sizes, of which the first is asked about. Nothing where a
// node or a constant depends on the size in another way than an exported file can say, which then
// has this size alone.
std::optional<OpenForms> open_forms(const std::vector<Model>& at_sizes);

}  // namespace zsq::models::onnx
