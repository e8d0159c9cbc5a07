// SPDX-License-Identifier: Apache-2.0
// The layers of ncnn that compute operators without weights of their own in float.
#pragma once
#include "exporters/ncnn/net.h"
#include "models/execute.h"

namespace zsq::exporters::ncnn {

// A shape without the batch, of which ncnn has none.
std::vector<std::int64_t> without_batch(const models::Shape& shape);
// Settings of Input, MemoryData and Reshape: width, height, [depth,] channels.
Settings sizes(const std::vector<std::int64_t>& shape);

// What ncnn has no layer for; names the operator.
class NoLayer : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Adds the layers of `node`; `shapes` are those of its inputs and its output. Throws NoLayer.
std::string add_float_op(Net& net, const models::Node& node, const models::ParameterStore& store,
                         const std::vector<std::string>& inputs,
                         const std::vector<models::Shape>& input_shapes,
                         const models::Shape& output_shape);

}  // namespace zsq::exporters::ncnn
