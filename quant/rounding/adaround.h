// SPDX-License-Identifier: Apache-2.0
// AdaRound layer by layer (2004.10568, eq. 21-25): with H = E x^ x^^T + lambda
// (quant/rounding/gptq.h) and w^ = s clamp(floor(w / s) + h(v)), Adam on v minimises tr (w^ - w) H
// (w^ - w)^T, in units of s^2 mean diag H, + 0.01 sum (1 - |2 h(v) - 1|^beta), beta from 20 to 2.
// Codes: h >= 1/2. With a level table, the level below w / s and h(v) times the gap to the next
// one; s^2 above is then the square of the levels' mean distance.
#pragma once
#include "quant/rounding/registry.h"

namespace zsq::quant {

// A RoundLayer; scales stay.
LayerRounding round_layer_by_adaround(const at::Tensor& weight, const InputMoments& moments,
                                      const cuda_kernels::Grid& grid, const QuantizerSpec& spec,
                                      const GptqOptions& options, const at::Tensor& levels);

}  // namespace zsq::quant
