// SPDX-License-Identifier: Apache-2.0
// Small networks with the awkward parts of real ones, and students of them.
#pragma once
#include "quant/student.h"
#include "tests/support/network_builder.h"

namespace zsq::test {

// Two residual blocks on 3 x 16 x 16 images, 5 classes: a depthwise convolution with asymmetric
// pads and ReLU6, a shortcut of Slice and Pad, negative and zero gammas, dead channels, a BatchNorm
// that follows no convolution, a pool that drops its last two dimensions.
models::Model awkward_network(std::uint64_t seed = 1);

// Every remaining operator between two convolutions: MaxPool, AvgPool, Concat, Mul, Sigmoid,
// HardSigmoid, HardSwish, LeakyRelu, Reshape, Transpose, Resize, a Clip with a bound above 0.
models::Model operator_zoo(std::uint64_t seed = 2);

// Layers of every shape on 3 x 16 x 16 images, 5 classes: strided, depthwise (also strided), 1x1,
// grouped and dilated convolutions, and a linear layer; ReLU, ReLU6, HardSwish and a gate of
// squeeze and excitation between them.
models::Model layer_zoo(std::uint64_t seed = 3);

// A stem and a residual unit as ConvNeXt has them, without BatchNorm: LayerNorm of maps and of
// features, GELU, a scale per channel.
models::Model convnext_units(std::uint64_t seed = 4);

// Ranges between the least and the most value, of 64 images.
QuantOptions scheme(std::int64_t weight_bits, std::int64_t activation_bits,
                    Target target = Target::onnxruntime);

// Quantized and calibrated on random images.
quant::Student student_of(const models::Model& teacher, const QuantOptions& options);

// As a run for another target would be written for this one.
quant::Student for_target(quant::Student student, Target target);

// What one code of the last layer's input is worth in a logit, at most.
double code_worth(const quant::Student& student);

// A value that lies on a threshold but for the last bit of a float, or for what its bias was
// rounded by, may round the other way; such a code moves a few others after it. (A channel that is
// the same everywhere may do so everywhere: of the seeds 1 to 7 of awkward_network, 4 has none
// that does.) A wrong bound, zero point or scale moves logits much further.
void expect_same_up_to_flips(const at::Tensor& logits, const at::Tensor& expected,
                             const quant::Student& student);

}  // namespace zsq::test
