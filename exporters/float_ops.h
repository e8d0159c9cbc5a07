// SPDX-License-Identifier: Apache-2.0
// Every models::Op but Input, Parameter, the layers with weights and Custom as ONNX operators.
#pragma once
#include <functional>

#include "exporters/onnx_builder.h"
#include "models/execute.h"

namespace zsq::exporters {

OnnxBuilder::Attributes conv_attributes(const models::Conv2d& conv,
                                        const std::vector<std::int64_t>& weight_shape);

// Adds the node for `node` on the values `inputs`, of which the first has `shape` for one image;
// returns the output's name. A GlobalAvgPool keeps
// its two dimensions of 1 in any case. With `requantize` the pads that an average pool counts are a
// Pad before it, of whose result it makes what the pool reads.
using Requantize = std::function<std::string(const std::string& x)>;
std::string add_float_op(OnnxBuilder& builder, const models::Node& node,
                         const models::ParameterStore& parameters,
                         const OnnxBuilder::Values& inputs, const models::Shape& shape,
                         const Requantize& requantize = {});

}  // namespace zsq::exporters
