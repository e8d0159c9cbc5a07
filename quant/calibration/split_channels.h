// SPDX-License-Identifier: Apache-2.0
// Puts channels that few bits harm most in the places of channels that are always 0. Between a
// convolution and a depthwise one, channels that end below 0 are no rarity; each leaves room for a
// copy of another along the whole way
//   convolution, BatchNorm, ReLU6 -> depthwise convolution, BatchNorm, ReLU6 -> 1x1 convolution,
// whose weights for a channel with n copies become 1 / n of what they were (outlier channel
// splitting, arXiv 1901.09504). Copy j is shifted by s ((j + 1/2) / n - 1/2), s the step of the
// channel's quantizer, and the depthwise BatchNorm takes the shift out again: the mean of n such
// quantizers has steps of s / n. The float network computes the same, but for values within s / 2
// of the bound of the ReLU6, in channels that are copied, and ones above 0 in those that give way.
// A channel gets another copy where that lowers the divergence most, which quantization noise of
// variance s^2 / 12 raises by
//   1/2 s^2 / 12 E sum_places (d log p_y / dx)^2,  y drawn from the network's own prediction p,
// the Fisher information of the channel's values; n copies divide it by n^2.
#pragma once
#include "models/graph.h"
#include "quant/options.h"

namespace zsq::quant {

// Whether split_channels() can change anything.
bool has_splittable_channels(const models::Model& model);

// images: f32 [N, C, H, W], for the Fisher information only. options: bits of the depthwise
// convolutions' inputs; those of 8 bits stay as they are.
models::Model split_channels(models::Model model, const QuantOptions& options,
                             const at::Tensor& images, std::int64_t batch_size, std::uint64_t seed);

}  // namespace zsq::quant
