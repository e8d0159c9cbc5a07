// SPDX-License-Identifier: Apache-2.0
// Tells rounding from a misreading where two programs give different results for one network. The
// network runs in double as well: what another program computed in float lies about as far from
// that as what execute() computes in float, if it computes the same network.
#pragma once
#include <optional>

#include "models/graph.h"

namespace zsq::models {

struct Rounding {
  double here = 0, there = 0;  // relative distances from double: of ours, of the other program's
  // There is at most four times as far as here, beside `tolerance`, and here is below a tenth: a
  // result that is all rounding proves nothing.
  bool explains(double tolerance) const;
};

// input [N, C, H, W]; `output` and `expected` are what the network's file gives for it in float as
// output `index`, here and there. None: an operator of a higher folder is known in float only.
std::optional<Rounding> measure_rounding(const Model& model, const at::Tensor& input,
                                         const at::Tensor& output, const at::Tensor& expected,
                                         std::size_t index = 0);

// max |a - b| / max |b|
double relative_distance(const at::Tensor& a, const at::Tensor& b);

}  // namespace zsq::models
