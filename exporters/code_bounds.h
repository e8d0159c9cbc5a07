// SPDX-License-Identifier: Apache-2.0
// Which codes each activation quantizer gives, and whether values come that would get others, so
// that a runtime must limit them where its integer type does not.
#pragma once
#include "exporters/plan.h"

namespace zsq::exporters {

// In the codes of the student's grid.
struct CodeBounds {
  std::int64_t lowest = 0, highest = 255;
  // Whether values reach the quantizer that would get a code beyond this end. A quantizer that is
  // repeated after a pool or a reshape, or follows a wider one, may see none.
  bool reached_below = false, reached_above = false;
};

// Index = NodeId; of calibrated quantizers. A Clip that became one with the quantizer after it
// narrows its codes: rounding is monotone, so clipping before it equals clamping the codes.
std::vector<CodeBounds> code_bounds(const quant::Student& student, const Plan& plan);

}  // namespace zsq::exporters
