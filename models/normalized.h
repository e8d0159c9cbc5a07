// SPDX-License-Identifier: Apache-2.0
// Normalisations that a file writes as their parts: x / |x|, x divided by the square root of its
// mean square, or times the inverse of one.
#pragma once
#include <optional>

#include "models/graph.h"

namespace zsq::models {

struct Normalized {
  std::size_t x;  // which of the two inputs is divided; the other is its length, or the inverse
  NodeId reduce;  // the sum or mean of x^2, |x| or x^4 that the length is a root of
};

// Empty where `id` is no division, no product, or one by anything else.
std::optional<Normalized> find_normalized(const Graph& graph, NodeId id);

}  // namespace zsq::models
