// SPDX-License-Identifier: Apache-2.0
// The weights of all layers of a network, quantized at once: what fake_quant.h and weight_range.h
// do for one, in a number of launches (a parallel region on the CPU) that does not grow with the
// layers, up to a few dozen.
#pragma once
#include <vector>

#include "cuda_kernels/fake_quant.h"
#include "cuda_kernels/weight_range.h"

namespace zsq::cuda_kernels {

struct QuantLayer {
  at::Tensor weight;  // f32 [C, ...]
  std::int64_t qmin = 0, qmax = 0;
  Surrogate surrogate = Surrogate::clipped;
  Grid grid = {};  // [] or [C]; undefined: the one that covers the weight, found anew
  bool symmetric = false, per_channel = true;  // of a grid that is found
};

// The grid of each layer: as given, or grid_from_range() of smallest and largest value. No
// gradient.
std::vector<Grid> layer_grids(const std::vector<QuantLayer>& layers);

// fake_quant() of each weight on its grid, and its gradients. All are on one device.
std::vector<at::Tensor> fake_quant_layers(const std::vector<QuantLayer>& layers);

// i64 [layers]: how many codes of each weight differ between two states; the layers have the same
// shapes, and the same shapes of grids, in both. NaN differs from everything. No gradient.
at::Tensor changed_codes(const std::vector<QuantLayer>& before,
                         const std::vector<QuantLayer>& after);

}  // namespace zsq::cuda_kernels
