// SPDX-License-Identifier: Apache-2.0
// Cross-layer equalisation through HardSwish and SiLU, which no factor passes: y = x h(x), h the
// HardSigmoid or sigmoid. With a factor s per channel x / s and y / s are what is quantized:
//   y / s = (x / s) h(s (x / s))
// gamma and beta of the BatchNorm before it are divided by s, a HardSigmoid gets it as its scale, a
// sigmoid reads a product with it, and the weights that read y are multiplied by it. Where y is
// added to the output of another BatchNorm, that one is divided as well. The network stays the same
// up to rounding errors. Both tensors have one range per channel, of which one scale serves all:
// with w_x the width of [max(b, mean - 4 deviations), mean + 4 deviations], as h is 0 below b = -3
// (sigmoid: nearly 0 below -6), and w_y that of y, s = sqrt(w_x w_y).
#pragma once
#include "models/graph.h"

namespace zsq::quant {

// Every HardSwish or SiLU between a BatchNorm that nothing else reads and convolutions or linear
// layers with weights of their own, pools, resizing, zero padding, sums, products and joins of
// channels between them; where the channels of x, y and what is added together gain a bit or more
// on average. SiLU only where the statistics are those of training.
models::Model scale_gates(models::Model model);

}  // namespace zsq::quant
