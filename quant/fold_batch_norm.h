// SPDX-License-Identifier: Apache-2.0
// Integer form of a quantized conv or linear layer with the BatchNorm after it folded in, exactly:
// with t = gamma / sqrt(variance + eps), scale' = scale * |t|, bias' = beta + (bias - mean) * t,
// and where t < 0 the codes are mirrored (q -> qmin + qmax - q, zero_point likewise). A channel
// with t = 0 or with all codes at the zero point keeps a scale of ordinary size and codes q =
// zero_point; where the step of the layer's input is known, every scale is large enough that the
// int32 bias, bias / (input scale * scale), stays below 2^30.
#pragma once
#include "quant/student.h"

namespace zsq::quant {

struct IntegerWeights {
  at::Tensor codes;       // int32, shape of the weight, within [qmin, qmax]
  at::Tensor zero_point;  // int32 [C]
  // int32 [C, 2^bits], ascending: what a code of the grid minus its zero point can be. For 4 bits
  // and fewer, else undefined.
  at::Tensor levels;
  at::Tensor scale;                // f32 [C] > 0
  at::Tensor bias;                 // f32 [C]
  models::NodeId batch_norm = -1;  // the node folded in; -1: none follows
};

IntegerWeights integer_weights(const Student& student, const WeightSite& site);

// A vector [C] with as many dimensions as the weight [C, ...], to be broadcast over it.
at::Tensor per_channel(const at::Tensor& vector, const at::Tensor& weight);

// Of the weight's shape: codes - zero_point, int32, and that times the scale, f32.
at::Tensor steps_of(const IntegerWeights& weights);
at::Tensor values_of(const IntegerWeights& weights);

}  // namespace zsq::quant
