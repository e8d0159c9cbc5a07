// SPDX-License-Identifier: Apache-2.0
// Convolutions and linear layers of ncnn, in int8 and in float.
#pragma once
#include <optional>

#include "exporters/layer_codes.h"
#include "exporters/ncnn/net.h"
#include "models/graph.h"

namespace zsq::exporters::ncnn {

// A layer's input in codes of zero point 0: their step, and the least and the most of them.
struct InputGrid {
  float step = 1;
  std::int64_t least = 0, most = 0;
};

// The weights of a layer with their zero points taken off, as ncnn holds them.
struct LayerWeights {
  at::Tensor codes;  // int32, of the weight's shape, -127 to 127
  at::Tensor scale;  // f32 [C], the step of a code
  at::Tensor bias;   // f32 [C], undefined if every bias is 0
};
// The bias has the value that its int32 codes have in the files of other targets.
LayerWeights layer_weights(const quant::IntegerWeights& integers,
                           const std::optional<InputCodes>& input);
bool fits_int8(const LayerWeights& weights);

// Adds the layer in int8; its input is quantized by itself. A grouped convolution that is not
// depthwise becomes one convolution for each group.
std::string add_int8_layer(Net& net, const models::Node& node, const std::string& x,
                           const LayerWeights& weights, const InputGrid& grid);

// The same in float, of a weight f32 and a bias that may be undefined.
std::string add_float_layer(Net& net, const models::Node& node, const std::string& x,
                            const at::Tensor& weight, const at::Tensor& bias);

// Whether sums of these products leave int32 in ncnn's Winograd kernel, which computes 576 times
// the sum of a 3 x 3 convolution.
bool overflows_in_winograd(const LayerWeights& weights, const InputGrid& grid);

}  // namespace zsq::exporters::ncnn
