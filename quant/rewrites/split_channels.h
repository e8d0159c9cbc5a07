// SPDX-License-Identifier: Apache-2.0
// Copies of the channels that few bits harm most (outlier channel splitting, arXiv 1901.09504),
// along the whole block through a depthwise convolution (quant/calibration/inverted_bottleneck.h).
// The weights with which the last convolution reads a channel with n copies become 1 / n of what
// they were. Copy j is shifted by s ((j + 1/2) / n - 1/2) before the depthwise convolution, s the
// step of the channel's quantizer there, and the depthwise BatchNorm takes the shift out again;
// likewise after it. The mean of n such quantizers has steps of s / n.
//
// Copies take the places of channels that are always 0, which are no rarity there, and places that
// are appended, while the multiplications of the network grow by no more than
// options.split_expansion per cent: as many together as keep a width that is a multiple of 2, 4, 8
// or 16 one, because integer kernels of runtimes are slow with other widths. The float network
// computes the same, because each shifted ReLU6 has its two bounds shifted with it (models::Clip);
// a student needs no such bounds, its quantizer rounds the lower one to 0. Where zeros pad a
// shifted channel, its copies differ by the shift.
//
// A channel gets another copy where that lowers the divergence most, per multiplication. It is
//   1/2 s^2 / 12 E sum_places (d log p_y / dx)^2,  y drawn from the network's own prediction p,
// with quantization noise of variance s^2 / 12 and the Fisher information of the channel's values;
// n copies divide it by n^2.
#pragma once
#include "models/graph.h"
#include "quant/options.h"

namespace zsq::quant {

// Whether split_channels() can change anything.
bool has_splittable_channels(const models::Model& model, const QuantOptions& options);

// images: f32 [N, C, H, W], for the Fisher information only. options: bits of the inputs of
// convolutions; depthwise ones of 8 bits stay as they are.
models::Model split_channels(models::Model model, const QuantOptions& options,
                             const at::Tensor& images, std::int64_t batch_size, std::uint64_t seed);

}  // namespace zsq::quant
