// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

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

}  // namespace zsq::pipeline
