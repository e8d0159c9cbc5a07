// SPDX-License-Identifier: Apache-2.0
// Weights and bias of one layer as the integers that onnxruntime multiplies.
#pragma once
#include <optional>

#include "formats/array.h"
#include "quant/fold_batch_norm.h"

namespace zsq::exporters {

struct LayerCodes {
  // i8 with zero point 0 (codes q - z) where they fit, else u8 (q + 128) with its zero points.
  formats::Array weight, zero_point;
  formats::Array scale;  // f32 [C]
  // Absent where every bias is 0. With the input's step s_x: i32 round(bias / (s_x * scale[c])) and
  // its scale, product in f32; else the f32 bias itself.
  std::optional<formats::Array> bias, bias_scale;
};

LayerCodes layer_codes(const quant::IntegerWeights& weights, std::optional<float> input_scale);

}  // namespace zsq::exporters
