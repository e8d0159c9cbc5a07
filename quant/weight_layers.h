// SPDX-License-Identifier: Apache-2.0
// All weight quantizers of a student at once (cuda_kernels/layer_fake_quant.h).
#pragma once
#include "cuda_kernels/layer_fake_quant.h"
#include "quant/student.h"

namespace zsq::quant {

// What `op` does to this weight: on the stored grid, or on one that is found anew.
cuda_kernels::QuantLayer weight_layer(const WeightQuantizer& op, const at::Tensor& weight,
                                      const models::ParameterStore& parameters);
std::vector<cuda_kernels::QuantLayer> weight_layers(const std::vector<WeightSite>& sites,
                                                    const models::ParameterStore& parameters);

// The same function, for execution with with_quantized_weights(): weight quantizers become
// Parameters of their own names.
models::Graph take_quantized_weights(models::Graph student);
// The student's parameters, and what its quantizers, those of `sites`, make of the weights.
models::ParameterStore with_quantized_weights(const Student& student,
                                              const std::vector<WeightSite>& sites);

}  // namespace zsq::quant
