// SPDX-License-Identifier: Apache-2.0
// How far weights are from their next rounding threshold, in steps of the optimizer: how many steps
// of this size and direction a code needs to change (AIT 2203.17008, section 3.3 and figure 3).
//   r_i = d_i / |D_i|,   d_i the distance in the direction of -D_i (cuda_kernels/inundation.h)
#pragma once
#include <string>
#include <vector>

#include "quant/weight_layers.h"

namespace zsq::analysis {

struct ThresholdDistances {
  std::vector<std::string> layers;
  std::vector<double> edges;                // of the bins of log10 r, one more than there are bins
  std::vector<std::vector<double>> shares;  // [layer][bin], of the layer's weights
  std::vector<double> never;                // share of each layer that no step of any length moves
  std::vector<double> within_one;           // share with r <= 1: the step itself changes the code
  std::vector<double> median;               // of the finite r; 0 if there are none
};

// `steps`: what the optimizer would subtract from each quantized weight. Bins of `per_decade` from
// 10^low to 10^high; what lies outside goes into the first and the last.
ThresholdDistances threshold_distances(const quant::Student& student,
                                       const std::vector<at::Tensor>& steps, int low = -2,
                                       int high = 8, int per_decade = 4);

}  // namespace zsq::analysis
