// SPDX-License-Identifier: Apache-2.0
// Sums over the patches of a depthwise convolution, whose K = kh * kw values are of one channel:
// InputMomentsSum without a copy of the patches, which takes longer than the products.
#pragma once
#include <vector>

#include "models/graph.h"

namespace zsq::quant {

// f64 [C, K, K] and [C, K]: over patches x and x^ less what is taken for their means.
struct PatchSums {
  at::Tensor products;                 // sum x^ x^^T
  at::Tensor mixed;                    // sum x x^^T
  at::Tensor sum, float_sum, squares;  // of x^, x and x^2
};

// x, x_hat f32 [N, C, H, W] on the CPU, without padding; means f32 [C]; `places`: of the output, in
// rows of `columns`. `kernel`: kh and kw. Adds to `sums`.
struct DepthwisePatches {
  const models::Conv2d& conv;
  models::Pair kernel;
  at::Tensor x, x_hat, mean, mean_hat;
  std::vector<std::int64_t> places;
  std::int64_t columns;
};
void add_depthwise_patches(const DepthwisePatches& patches, PatchSums& sums);

}  // namespace zsq::quant
