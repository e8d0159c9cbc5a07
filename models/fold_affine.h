// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "models/graph.h"

namespace zsq::models {

// A convolution that nothing else reads, then [a product with one constant per output channel and]
// a sum with one becomes one convolution:
//   s (W x + b) + t = (s W) x + (s b + t)
// Exporters of Keras write so what they make of a BatchNorm after DepthwiseConv2D. Where there was
// a product, the bias has "fused_bn" in its name, which tells count_batch_norm() that the
// statistics are gone.
void fold_affine_pairs(Model& model);

}  // namespace zsq::models
