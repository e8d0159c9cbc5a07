// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "exporters/registry.h"
#include "quant/student.h"

namespace zsq::pipeline {

// A quantized conv or linear layer of a student.
struct StudentLayer {
  std::string name, op;
  std::int64_t weight_bits = 0;
  std::int64_t activation_bits = 0;  // of its input; 0: float
  const quant::WeightQuantizer* quantizer = nullptr;
  const quant::ActivationQuantizer* input = nullptr;  // null: float
  std::string weight;                                 // name of the latent weight
};
std::vector<StudentLayer> student_layers(const quant::Student& student);

// The share, from 0 to 1, of the multiply-accumulates of one image that are not in integers: of
// convolutions and linear layers by what `layers` say of them, those that it does not name being
// float, and of products of two tensors, which no target has in integers, and of a tail
// (models/tail.h).
double float_share(const quant::Student& student, const std::vector<exporters::ExecutesAs>& layers);

}  // namespace zsq::pipeline
