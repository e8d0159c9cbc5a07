// SPDX-License-Identifier: Apache-2.0
// Operators that select or move values: on floats and on codes alike, whose grid they keep.
#pragma once
#include "exporters/tflite/builder.h"
#include "models/execute.h"

namespace zsq::exporters::tflite {

// `out_shape` in the student's order. Throws NoOperator
// (island_ops.h) or, where it lies in an attribute, Error(unsupported_model).
TensorId shape_op(Builder& builder, const models::Node& node, TensorId x,
                  const models::Shape& out_shape);

}  // namespace zsq::exporters::tflite
