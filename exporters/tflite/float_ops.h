// SPDX-License-Identifier: Apache-2.0
// Operators of a float island, but for layers (layers.h) and what moves values (shape_ops.h).
#pragma once
#include "exporters/tflite/builder.h"
#include "models/execute.h"

namespace zsq::exporters::tflite {

// `out_shape` in the student's order. Throws NoOperator
// (island_ops.h) or, where it lies in an attribute, Error(unsupported_model).
TensorId float_op(Builder& builder, const models::Node& node,
                  const models::ParameterStore& parameters, const std::vector<TensorId>& inputs,
                  const models::Shape& out_shape);

// MEAN over height and width; the grid of the result in `kind`.
TensorId mean_of_map(Builder& builder, TensorId x, bool keep_dims, const std::string& name,
                     const Kind& kind);

// CONCATENATION along the student's axis, of tensors of one kind.
TensorId concatenate(Builder& builder, const std::vector<TensorId>& inputs, std::int64_t axis,
                     const std::string& name, const models::Shape& out_shape);

}  // namespace zsq::exporters::tflite
