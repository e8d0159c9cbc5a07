// SPDX-License-Identifier: Apache-2.0
// Convolutions and linear layers. Weights change their order: [O, I, H, W] becomes [O, H, W, I],
// and a depthwise [O, 1, H, W] becomes [1, H, W, O].
#pragma once
#include <optional>

#include "exporters/layer_codes.h"
#include "exporters/tflite/grid.h"
#include "models/execute.h"

namespace zsq::exporters::tflite {

// One layer. Its operator reads map or features x and gives float values, or codes of `grid`.
struct Layer {
  const models::Node& node;
  TensorId x;
  models::Shape out_shape;  // the student's order
  std::optional<Grid> grid;
};

// In integers: weights int8 with a scale per channel, bias int32.
TensorId integer_layer(Builder& builder, const Layer& layer, const LayerCodes& codes);
// In float, with a weight [O, ...] and a bias [O] or none.
TensorId float_layer(Builder& builder, const Layer& layer, const at::Tensor& weight,
                     const at::Tensor& bias);

// A depthwise convolution of one window that multiplies every channel by `factor` and adds
// `addend`, in integers with one rounding: what a runtime without such an operator for codes has.
// `kernel` x `kernel` windows sum up, as an average pool does.
struct ScaledSum {
  double factor = 1, addend = 0;
  at::Tensor scale;  // f32 [C] times `factor`, where channels have their own; undefined: 1
  models::Pair kernel{1, 1}, stride{1, 1}, out{1, 1};
};
TensorId scaled_sum(Builder& builder, TensorId x, const ScaledSum& sum, const Grid& grid,
                    const std::string& name);

}  // namespace zsq::exporters::tflite
