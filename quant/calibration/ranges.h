// SPDX-License-Identifier: Apache-2.0
// Ranges of weights and activations. Which rules there are, quant/calibration/registry.h says.
#pragma once
#include <functional>

#include "cuda_kernels/weight_range.h"
#include "quant/calibration/histogram.h"
#include "quant/data_free/inferred_values.h"
#include "quant/student.h"

namespace zsq::quant {

// The grid of a weight by a rule.
cuda_kernels::Grid weight_grid(const at::Tensor& weight, const QuantizerSpec& spec,
                               bool per_channel, WeightRange rule);

// Of values one by one.
using FunctionOfValues = std::function<at::Tensor(const at::Tensor&)>;

// The range with the smallest mean of |f(fake-quantized value) - f(value)|^power, f the identity
// where none is given: (lo, hi) = r * (min, max), then either end alone, r in {1, 0.99, ..., 0.01}.
// Not finite where a value was not.
std::pair<double, double> least_error_range(const Histogram& histogram, const QuantizerSpec& spec,
                                            double power, const FunctionOfValues& f = {});

// The function of one variable that all readers of a tensor compute together, through quantizers:
// an activation function, or x sigmoid(x) as two nodes. Empty where something else reads it. Where
// such a function is flat, as SiLU is below -8, values need no codes.
FunctionOfValues function_of_readers(const models::Graph& graph, models::NodeId source);

// What bn_statistics gives the values of a node: least_error_range() of their distribution, after
// function_of_readers(), with the fourth power of the error, at 8 bits the fifth, for the network's
// input the second.
std::pair<double, double> range_from_statistics(const models::Graph& graph,
                                                const InferredValues& values, models::NodeId source,
                                                const QuantizerSpec& spec);

// Takes the ranges of all activation quantizers. `next_batch` gives [N, C, H, W] images until
// options.calibration_images are seen. bn_statistics uses no image. Quantizers upstream are active
// while later ones are observed only for the weights; activations are observed unquantized.
// Where options.image_lo/hi are known, the network's input and what normalises it have the ranges
// that follow (image_range.h).
void calibrate(Student& student, const std::function<at::Tensor()>& next_batch);
// The same on these images, all of them or, where those are fewer, options.calibration_images.
void calibrate(Student& student, const at::Tensor& images, std::int64_t batch_size);

}  // namespace zsq::quant
