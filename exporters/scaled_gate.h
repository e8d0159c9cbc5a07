// SPDX-License-Identifier: Apache-2.0
// A HardSigmoid with a scale per channel in integers. No sum of codes has one: it is a depthwise
// convolution of one place, whose weights are one code each,
//   alpha s x + beta = sum over one product of (127 (alpha s / 127)) x, and beta as its bias
// and whose result ends at 0 and 1 by the quantizer after it.
#pragma once
#include "exporters/onnx_builder.h"
#include "models/graph.h"

namespace zsq::exporters {

// x: a value [N, C, H, W] on a grid with the scale `input_scale`. Adds the nodes and answers the
// name of the last, that of `gate`.
std::string scaled_gate(OnnxBuilder& builder, const models::Node& gate,
                        const models::ParameterStore& parameters, const std::string& x,
                        float input_scale);

// Error(unsupported_model) where the graph has one: `target` cannot hold it exactly.
void require_plain_gates(const models::Graph& graph, const std::string& target);

}  // namespace zsq::exporters
