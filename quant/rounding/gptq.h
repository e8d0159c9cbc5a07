// SPDX-License-Identifier: Apache-2.0
// One layer's weights, rounded so that its output changes least: with x what it reads in the float
// network and x^ what it reads in the student, both without their means, for each output channel
// with weights w on a grid of scale s
//   minimise E (w y - s c x^)^2 + lambda |w - s c|^2 over codes c and s,   y = x^ + e (x - x^),  e:
//   error_compensation
// lambda = damping * mean_k E x^_k^2. With H = E x^ x^^T + lambda and M = E y x^^T + lambda that is
// (s c - t) H (s c - t)^T for t = w M H^-1: a lattice problem (quant/rounding/lattice.h; Optimal
// Brain Compression 2208.11580, GPTQ 2210.17323) whose target makes good a share of what the layers
// before have changed (GPTAQ 2504.02692). Means are for the bias
// (quant/calibration/bias_correction.h).
#pragma once
#include "quant/rounding/registry.h"

namespace zsq::quant {

// A RoundLayer. Where `grid` has a scale for each output channel, 0.8 to 1.2 times that scale are
// tried, else it stays.
LayerRounding round_layer_by_gptq(const at::Tensor& weight, const InputMoments& moments,
                                  const cuda_kernels::Grid& grid, const QuantizerSpec& spec,
                                  const GptqOptions& options, const at::Tensor& levels = {});

}  // namespace zsq::quant
