// SPDX-License-Identifier: Apache-2.0
// Average pools. AVERAGE_POOL_2D divides by the elements of the map alone, and on codes it keeps
// the grid of its input, so that a value would be rounded twice.
#pragma once
#include "exporters/tflite/layers.h"

namespace zsq::exporters::tflite {

// In float, with any pads: a pool of the padded map, times a constant map where windows count
// fewer elements than they have.
TensorId float_average_pool(Builder& builder, const models::AvgPool& op, TensorId x,
                            const models::Shape& out_shape, const std::string& name);

// Whether every window counts all of its elements, as what integer_average_pool() computes does.
bool counts_all(const models::AvgPool& op, const Sizes& map, const models::Shape& out_shape);
TensorId integer_average_pool(Builder& builder, const models::AvgPool& op, TensorId x,
                              const models::Shape& out_shape, const Grid& grid,
                              const std::string& name);

}  // namespace zsq::exporters::tflite
