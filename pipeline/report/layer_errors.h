// SPDX-License-Identifier: Apache-2.0
// How much each layer of a student differs from its teacher's, without labels.
#pragma once
#include <map>
#include <string>

#include "quant/student.h"

namespace zsq::pipeline {

// Signal-to-quantization-noise ratios, 10 log10(sum y^2 / sum (y^ - y)^2), in dB.
struct LayerError {
  double weight_sqnr = 0;  // of the weights
  double output_sqnr = 0;  // of the layer's output (before bias and BatchNorm), from the float
                           // network's input to it, quantized: what this layer alone costs
};

// By layer name. images f32 [N, C, H, W]: a few serve, all values in between are kept at once.
std::map<std::string, LayerError> layer_errors(const models::Model& teacher,
                                               const quant::Student& student,
                                               const at::Tensor& images);

}  // namespace zsq::pipeline
