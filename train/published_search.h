// SPDX-License-Identifier: Apache-2.0
// The factor k as the published AIT code (arXiv 2203.17008) searches it, to compare with the exact
// one.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>

namespace zsq::train {

// share(k): part of a layer's codes that differ between weights w and w - k D. 1 if share(1) >=
// target; else k doubles until the share is reached, then up to five bisections between k/2 and k,
// ending where |share - target| < target / 100. The answer is the last k tried, so its share may
// lie below the target. A layer in which no k below 2^60 reaches it (no usable gradient) gets 1.
double published_factor(const std::function<double(double)>& share, double target);

}  // namespace zsq::train
