// SPDX-License-Identifier: Apache-2.0
// Cross-layer equalisation through HardSwish, which no factor passes: y = x h(x), h the
// HardSigmoid. With a factor s per channel x / s and y / s are what is quantized:
//   y / s = (x / s) h(s (x / s))
// gamma and beta of the BatchNorm before it are divided by s, h gets it as its scale, and the
// weights that read y are multiplied by it. The network stays the same up to rounding errors. Both
// tensors have one range per channel, of which one scale serves all: with w_x the width of
// [max(-3, mean - 4 deviations), mean + 4 deviations], as h is 0 below -3, and w_y that of what
// HardSwish makes of it, s = sqrt(w_x w_y).
#pragma once
#include "models/graph.h"

namespace zsq::quant {

// Every HardSwish between a BatchNorm that nothing else reads and convolutions or linear layers
// with weights of their own, pools, resizing, zero padding, products and joins of channels between
// them; where the channels of x and y together gain a bit or more on average.
models::Model scale_gates(models::Model model);

}  // namespace zsq::quant
