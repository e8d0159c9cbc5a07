// SPDX-License-Identifier: Apache-2.0
// Q/DQ form that onnxruntime executes in integers on x86 (uint8 activations, an integer clamp
// between QuantizeLinear and DequantizeLinear for fewer than 8 bits, no operator between a
// convolution and its QuantizeLinear).
#pragma once
#include "exporters/plan.h"
#include "formats/onnx.h"

namespace zsq::exporters {

formats::onnx::Model onnxruntime_model(const quant::Student& student, const Plan& plan,
                                       const ExportOptions& options);

}  // namespace zsq::exporters
