// SPDX-License-Identifier: Apache-2.0
// What a form (exporters/qdq_form.h) is told of an activation quantizer.
#pragma once
#include "exporters/plan.h"
#include "exporters/qdq_form.h"

namespace zsq::exporters {

// Of a quantizer that has its scale.
ActivationCodes activation_codes(const quant::Student& student, const Plan& plan, models::NodeId id,
                                 const CodeBounds& bounds);

}  // namespace zsq::exporters
