// SPDX-License-Identifier: Apache-2.0
// The range that each channel of a tensor would take if it had a scale of its own.
#pragma once
#include <ATen/core/Tensor.h>

namespace zsq::quant {

// For channels that are min(max(0, N(mean, deviation^2)), bound): the upper end r in (0, bound] of
// the unsigned grid r / (2^bits - 1) * {0, 1, ...} with the least mean |error|^7. mean, deviation
// f32 [C] -> f32 [C]. A channel that is always 0 has `bound`.
at::Tensor channel_ranges(const at::Tensor& mean, const at::Tensor& deviation, double bound,
                          std::int64_t bits);

}  // namespace zsq::quant
