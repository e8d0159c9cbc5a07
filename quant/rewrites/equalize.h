// SPDX-License-Identifier: Apache-2.0
// Cross-layer equalisation (arXiv 1906.04721, section 4.1): the channels of a tensor get more equal
// ranges, so that one scale serves them all. A factor f per channel goes into gamma and beta of the
// BatchNorm that makes the tensor and is taken out of the weights that read it. With r = |mean| +
// 4 deviations the reach of a channel (of a ReLU's output beta + 4 |gamma|) and w the largest
// weight that reads it:
//   ReLU, LeakyReLU, PReLU -> convolution  f = 2^round(log2 sqrt(w / r)): a power of two changes no
//                                   mantissa, the network gives the same floats
//   ... -> depthwise convolution    f = 2^round(log2(1 / r)): its weights have a scale per channel,
//                                   so that they lose nothing
//   ReLU6 -> depthwise convolution  f = 6 / r, r the range that the channel would take with a scale
//                                   of its own (channel_ranges.h): one scale, up to 6, then serves
//                                   each channel as its own would; by other settings than depthwise
//                                   r = beta + 8 |gamma|, which cuts nothing off
//   linear layers -> convolutions   f = w^(1/4) r^(-3/4): one factor for all tensors that additions
//                                   join, w and r geometric means over what convolutions read
// The last two give the same network up to rounding errors: with ranges of their own, channels have
// a ReLU6 with a bound 6 f for each (models::Clip, "upper"). A student needs no such bounds,
// because its quantizer ends at 6 or below. Between the BatchNorm and its reader may be pools and
// zero padding, each with one reader; a linear tensor has convolutions and additions as readers and
// nothing else.
#pragma once
#include "models/graph.h"
#include "quant/options.h"

namespace zsq::quant {

// In mode deploy parallel branches are merged first (quant/rewrites/merge_branches.h), and gates
// get scales (quant/rewrites/scale_gates.h) for targets that run HardSwish as a product. Then as
// options.equalize says. depthwise: depthwise readers; inverted_residuals: linear layers as
// well; neither where weights and activations have 8 bits, which gain nothing. all: dense readers
// after a ReLU as well, at any bits.
models::Model equalize(models::Model model, const QuantOptions& options);

}  // namespace zsq::quant
