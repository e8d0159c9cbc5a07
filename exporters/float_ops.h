// SPDX-License-Identifier: Apache-2.0
// Every models::Op but Input, Parameter, the layers with weights and Custom as ONNX operators.
#pragma once
#include "exporters/onnx_builder.h"
#include "models/execute.h"

namespace zsq::exporters {

OnnxBuilder::Attributes conv_attributes(const models::Conv2d& conv,
                                        const std::vector<std::int64_t>& weight_shape);

// Adds the node for `node` on the values `inputs`, of which the first has `shape` for one image;
// returns the output's name. A GlobalAvgPool keeps
// its two dimensions of 1 in any case. With `pads_alone` the pads that an average pool counts are a
// Pad before it.
std::string add_float_op(OnnxBuilder& builder, const models::Node& node,
                         const models::ParameterStore& parameters,
                         const OnnxBuilder::Values& inputs, const models::Shape& shape,
                         bool pads_alone = false);

}  // namespace zsq::exporters
