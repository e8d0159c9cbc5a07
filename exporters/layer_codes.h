// SPDX-License-Identifier: Apache-2.0
// Weights and bias of one layer as the integers that onnxruntime multiplies.
#pragma once
#include <optional>

#include "exporters/packed_codes.h"
#include "exporters/plan.h"
#include "quant/fold_batch_norm.h"

namespace zsq::exporters {

// The grid of the layer's input: its step, its largest code, and what bounds pairs of weights
// (quant/pair_bound.h; 0: nothing).
struct InputCodes {
  float scale;
  std::int64_t largest, pair_bound;
};
// Nothing where the input is not quantized. `saturates`: the file's runtimes add products in 16
// bits on some processors.
std::optional<InputCodes> input_codes(const quant::Student& student, const models::Node& layer,
                                      bool saturates);

struct LayerCodes {
  // i8 with zero point 0 if the codes q - z fit and no pair is beyond its bound, else u8 (q + 128)
  // with its zero points. Where
  // the input is on a grid, i8 codes are multiplied by a power of two per channel and the scale is
  // divided by it: the same weights, and a finer step for the bias.
  formats::Array weight, zero_point;
  std::optional<PackedCodes> packed;  // the same as `weight`, if it was asked for and is possible
  formats::Array scale;               // f32 [C]
  // Absent if every bias is 0. With the input's step s_x: i32 round(bias / (s_x * scale[c])) and
  // its scale, product in f32; else the f32 bias itself.
  std::optional<formats::Array> bias, bias_scale;
};

// `pack`: weights of 4 bits and fewer in packed form, too.
LayerCodes layer_codes(const quant::IntegerWeights& weights, const std::optional<InputCodes>& input,
                       bool pack);

}  // namespace zsq::exporters
