// SPDX-License-Identifier: Apache-2.0
// Cross-layer equalisation (arXiv 1906.04721, section 4.1) for BatchNorm - ReLU - convolution: the
// channels of the tensor between get more equal ranges, so that one scale serves them all. With
// r = beta + 4 |gamma| the reach of a channel and w the largest weight that reads it,
//   f = 2^round(log2 sqrt(w / r)),   gamma f, beta f, weight / f
// brings both to about sqrt(r w). Powers of two change no mantissa: the network gives the same
// floats. A depthwise convolution has a scale per channel, so w = 1 there.
//
// Only where f passes through the nodes between: Clip from 0 without an upper end or LeakyRelu,
// then pools and zero padding, each with one reader. The bound of a ReLU6 would have to be another
// for each channel, so such a channel stays as it is.
#pragma once
#include "models/graph.h"

namespace zsq::quant {

models::Model equalize(models::Model model);

}  // namespace zsq::quant
