// SPDX-License-Identifier: Apache-2.0
// The codes of an activation quantizer as int8. A student's codes are q in [qmin, qmax]; stored are
// q + shift, with zero point z + shift, which are the same values. The shift is chosen so that the
// limits of int8 do as much of the clamping as they can: with fewer than 8 bits the highest code
// is 127, and a code below the zero point is cut off by the operator's fused ReLU where the lowest
// code is the zero point.
#pragma once
#include "exporters/code_bounds.h"
#include "exporters/tflite/builder.h"

namespace zsq::exporters::tflite {

struct Grid {
  float scale = 1;
  std::int64_t zero_point = 0, shift = 0;
  std::int64_t lowest = -128, highest = 127;      // as stored
  bool limit_below = false, limit_above = false;  // values come that int8 does not cut off there

  Kind kind() const { return {TensorType::INT8, {scale}, {zero_point}, 0}; }
  // A ReLU in the operator's own arithmetic cuts off below the zero point.
  bool relu_limits_below() const { return limit_below && lowest == zero_point; }
};

// The grid with the shift that needs the fewest operators.
Grid choose_grid(float scale, std::int64_t zero_point, const CodeBounds& bounds);
// With the shift of a quantizer before it on the same grid.
Grid shifted_grid(float scale, std::int64_t zero_point, const CodeBounds& bounds,
                  std::int64_t shift);

// Why int8 cannot hold it; empty if it can.
std::string why_not_int8(const Grid& grid);

Activation fused(const Grid& grid);  // what an operator that can fuse a ReLU is to be given
// Codes limited to the grid. `after_fused`: the operator before had fused(grid).
TensorId limit(Builder& builder, TensorId codes, const Grid& grid, bool after_fused,
               const std::string& name);

// From one grid to another. A sum with 0: LiteRT's QUANTIZE from int8 to int8 multiplies by the
// ratio of the steps with few fractional bits, so that codes come out wrong; its ADD has 20.
TensorId requantize(Builder& builder, TensorId codes, const Grid& grid, const std::string& name);

}  // namespace zsq::exporters::tflite
