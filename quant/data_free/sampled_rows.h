// SPDX-License-Identifier: Apache-2.0
// Distributions of what an operator gives where no exact law is known.
#pragma once
#include <limits>

#include "quant/data_free/distribution.h"

namespace zsq::quant::distribution {

constexpr int kSamples = 256;

// `function` of tensors (rows [kNodes, ...]) whose values are all independent: each value gets
// kSamples samples, the quantiles in the middle of equal shares of its probability, in an order of
// its own; `function` acts on these as on a batch of images, [n, ...] -> [n, ...]; and the samples
// of each result, sorted, are its quantiles. Samples reach 2.9 deviations; beyond 2.5 the quantiles
// go on as a line with the slope between 1.5 and 2.5, no further than `lowest` and `highest`.
// Tensors of more than 2^17 values get fewer samples, so that 2^25 values exist at a time, but at
// least 32. The same for the same shapes.
at::Tensor sampled(const std::vector<at::Tensor>& inputs, const Function& function,
                   double lowest = -std::numeric_limits<double>::infinity(),
                   double highest = std::numeric_limits<double>::infinity());

}  // namespace zsq::quant::distribution
