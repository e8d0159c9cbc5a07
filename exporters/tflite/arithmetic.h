// SPDX-License-Identifier: Apache-2.0
// Sums and products of two tensors, on floats or, with a grid, on codes.
#pragma once
#include <optional>

#include "exporters/tflite/grid.h"

namespace zsq::exporters::tflite {

// The operands broadcast; one with fewer dimensions, a constant, is to have them all (as_stored()).
TensorId add(Builder& builder, TensorId a, TensorId b, const std::string& name,
             const std::optional<Grid>& grid = std::nullopt);
TensorId multiply(Builder& builder, TensorId a, TensorId b, const std::string& name,
                  const std::optional<Grid>& grid = std::nullopt);

// A constant with `rank` dimensions in stored order.
formats::Array as_stored(const formats::Array& array, std::size_t rank);

}  // namespace zsq::exporters::tflite
