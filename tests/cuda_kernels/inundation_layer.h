// SPDX-License-Identifier: Apache-2.0
// Random layers for tests of inundation, and what becomes of them.
#pragma once
#include <ATen/ops/round.h>
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "cuda_kernels/inundation.h"
#include "tests/cuda_kernels/helpers.h"
#include "tests/reference/inundation.h"

namespace zsq::test {

inline at::Tensor scalar(float v) { return at::scalar_tensor(v); }

struct Outcome {
  float k;
  std::int64_t crossings;
  bool skipped;
};
inline Outcome outcome_of(const cuda_kernels::InundationResult& result, std::int64_t layer = 0) {
  return {result.k[layer].item<float>(), result.crossings[layer].item<std::int64_t>(),
          result.skipped[layer].item<bool>()};
}

struct Layer : cuda_kernels::InundationLayer {
  cuda_kernels::InundationArgs args{.crossing_rate = 0.01, .k_max = 1e9, .c_max = kInf};

  Outcome step() { return outcome_of(cuda_kernels::inundate_({*this}, args)); }
  at::Tensor codes() const { return reference::codes(weight, scale, zero_point, qmin, qmax); }
  at::Tensor intended() const {
    return reference::nesterov_step(velocity, gradient, args.lr, args.momentum).step;
  }
  // The m-th smallest ratio, and what float resolution may add to it: a few units in the last place
  // of the weight, in steps.
  std::pair<double, double> wanted_factor(std::int64_t m) const {
    const at::Tensor step = intended();
    const auto r = reference::ratios_by_trial(weight, step, scale, zero_point, qmin, qmax);
    std::vector<std::int64_t> order(r.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](auto a, auto b) { return r[a] < r[b]; });
    const std::int64_t i = order[m - 1];
    const double threshold =
        std::abs(weight.view({-1})[i].item<float>()) + scale.max().item<float>();
    return {r[i], 1e-5 * r[i] + 5e-7 * threshold / std::abs(step.view({-1})[i].item<float>())};
  }
};

inline Layer make_layer(at::IntArrayRef shape) {
  const at::Tensor weight = random(shape, 0.1);
  const at::Tensor lo = weight.flatten(1).amin(1), hi = weight.flatten(1).amax(1);
  const at::Tensor scale = (hi - lo) / 15;
  return {{weight, random(shape, 1e-4), random(shape, 1e-4), scale,
           (-8 - at::round(lo / scale)).clamp(-8, 7), -8, 7}};
}

}  // namespace zsq::test
