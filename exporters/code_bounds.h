// SPDX-License-Identifier: Apache-2.0
// Which codes each activation quantizer gives, and what a runtime must do besides saturating at 0
// and 255 to get no others.
#pragma once
#include "exporters/plan.h"

namespace zsq::exporters {

struct CodeBounds {
  std::uint8_t lowest = 0, highest = 255;
  // Whether values reach the quantizer that would get a code beyond this end. A quantizer that is
  // repeated after a pool or a reshape, or follows a wider one, may see none.
  bool clamp_below = false, clamp_above = false;
};

// Index = NodeId; of calibrated quantizers. A Clip that became one with the quantizer after it
// narrows its codes: rounding is monotone, so clipping before it equals clamping the codes.
std::vector<CodeBounds> code_bounds(const quant::Student& student, const Plan& plan);

}  // namespace zsq::exporters
