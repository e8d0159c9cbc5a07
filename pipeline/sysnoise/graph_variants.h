// SPDX-License-Identifier: Apache-2.0
// The same network as another runtime may compute it.
#pragma once
#include <c10/core/ScalarType.h>

#include <optional>

#include "models/graph.h"

namespace zsq::pipeline {

// Max pooling of stride 2 or more with ceil_mode the other way round: a map of 112 becomes 57 in
// place of 56 where a kernel of 3 was padded by 1. Nothing: there is no such pooling.
std::optional<models::Graph> other_ceil_mode(const models::Graph& graph);

// Padding that differs between two sides of a map (TensorFlow's SAME) with the sides exchanged.
// Nothing: there is none.
std::optional<models::Graph> other_padding_side(const models::Graph& graph);

// Weights of layers and every value between operators rounded to `type` (kHalf, kBFloat16), sums
// within an operator in f32. A BatchNorm after a layer is part of it, as runtimes fold it.
models::Model rounded(const models::Model& model, at::ScalarType type);

// Holds operators of this engine: quantizers.
bool has_quantizers(const models::Graph& graph);

}  // namespace zsq::pipeline
