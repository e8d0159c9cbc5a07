// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <utility>

#include "models/graph.h"

namespace zsq::pipeline {

// The preprocessing that a network has in itself: constants that scale and shift its pixels before
// the first layer, x -> scale x + shift, {scale, shift}, means over channels and places. Empty if
// it has none, or if what they do is no such function.
std::optional<std::pair<double, double>> constants_before(const models::Model& model);

}  // namespace zsq::pipeline
