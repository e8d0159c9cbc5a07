// SPDX-License-Identifier: Apache-2.0
// What few bits in one layer alone do to the answer (the sensitivity of ZeroQ, arXiv 2001.00281,
// section "Sensitivity Analysis"):
//   sensitivity = 1/N sum_n KL(softmax T(x_n) || softmax T'(x_n)),  nats per image,
// T' the teacher in which the weights of that layer, or its input, are quantized and all else is
// float. Weights come as a student of these options has them at the start (equalisation, range,
// rounding, bias correction; second-order rounding of each layer as if it alone were quantized);
// the range of an input from the same images, or from BatchNorm statistics where the options say
// so. Sensitivities of several layers are taken to add up.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/observer.h"
#include "quant/student.h"

namespace zsq::quant {

struct LayerSensitivity {
  std::string layer, op;
  std::int64_t weights = 0, macs = 0;                 // macs of one image
  bool end = false;                                   // the first or the last layer
  std::map<std::int64_t, double> weight_sensitivity;  // by bits
  std::map<std::int64_t, double> input_sensitivity;   // empty if the input stays float
};

struct SensitivityJob {
  const models::Model& teacher;
  QuantOptions options;  // num_bits and layer_bits do not matter
  at::Tensor images;     // f32 [N, C, H, W]
  std::int64_t min_bits = 2, max_bits = 8;
  bool inputs = true;  // measure them too
  // For a rounding method that needs images, f32 [N, C, H, W]; undefined: `images`.
  at::Tensor rounding_images = {};
  std::uint64_t seed = 0;
};

// Layers in order of the network. Error(stopped) if the observer asks for it.
std::vector<LayerSensitivity> measure_sensitivity(const SensitivityJob& job, Observer& observer);

}  // namespace zsq::quant
