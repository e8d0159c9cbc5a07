// SPDX-License-Identifier: Apache-2.0
// Operators that LiteRT computes on int8 codes as the student computes values: one rounding, onto
// the grid of the quantizer after the operator. Layers are in layers.h, what moves codes in
// shape_ops.h.
#pragma once
#include "exporters/tflite/grid.h"
#include "models/execute.h"

namespace zsq::exporters::tflite {

struct IntegerOp {
  const models::Node& node;
  std::vector<TensorId> inputs;  // codes
  models::Shape out_shape;       // the student's order
  Grid grid;                     // of the result
  at::Tensor scale = {};         // of a HardSigmoid that has one per channel
};

// Nothing where the operator has to be a float one.
std::optional<TensorId> integer_op(Builder& builder, const IntegerOp& op);

}  // namespace zsq::exporters::tflite
