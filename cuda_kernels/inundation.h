// SPDX-License-Identifier: Apache-2.0
// Gradient inundation (AIT, arXiv 2203.17008, section 4), exact and without a search.
//
// Nesterov step:  v <- momentum * v + g,   D = lr * (g + momentum * v).
//
// With scale and zero point held fixed, weight i crosses a rounding threshold iff k > r_i, where
// r_i = d_i / |D_i| and d_i >= 0 is the distance from w_i to the next threshold in the direction
// -D_i (infinite if D_i = 0 or the code is at the end of its range that way). Thresholds lie at
// (q - zero_point + 1/2) * scale; a weight that lies exactly on one has the code that
// round-half-even gives it, and d = 0 towards the other side.
//
// m = max(1, ceil(T * n)); k = max(1, just past the m-th smallest r); if fewer than m ratios are
// finite or k > k_max, k = k_max. Each move is clipped:
//   w <- w - clamp(k * D, -c_max * scale, c_max * scale)
//
// "Just past": where k < k_max and no move is clipped, at least m codes really change in float,
// also where D is below the resolution of w. For that the m-th smallest is taken of ratios whose d
// is longer by 3 units in the last place of the threshold, and k is 1 + 2^-20 times it.
//
// Where D is not finite for any weight of a layer, nothing is applied to it and `skipped` is set.
//
// All layers of a network are taken at once: on a GPU by a number of launches that does not grow
// with them (up to a few dozen), and without waiting for it.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

namespace zsq::cuda_kernels {

struct InundationArgs {
  double lr = 1e-4, momentum = 0.9;
  double crossing_rate = 1e-3;  // T, share of a layer's weights
  double k_max = 1e4, c_max = 1;
};

// weight, velocity [C, ...] f32, both dense and in one memory format, are changed in place;
// gradient of the same shape; scale, zero_point [C] or [].
struct InundationLayer {
  at::Tensor weight, velocity, gradient, scale, zero_point;
  std::int64_t qmin = 0, qmax = 0;
};

// One entry per layer, on the device of the layers.
struct InundationResult {
  at::Tensor k;          // f32, 1 if skipped
  at::Tensor crossings;  // i64: weights whose code (grid fixed) changed
  at::Tensor skipped;    // bool
};

// At least one layer, all on one device. `last_k`, the k of a step before this one or undefined,
// lets the CPU implementation look at fewer ratios; it changes no result.
InundationResult inundate_(const std::vector<InundationLayer>& layers, const InundationArgs& args,
                           const at::Tensor& last_k = {});

// The ratios r, never NaN: f32, shape and memory format of weight, for step D = `step`.
at::Tensor crossing_ratios(const at::Tensor& weight, const at::Tensor& step,
                           const at::Tensor& scale, const at::Tensor& zero_point, std::int64_t qmin,
                           std::int64_t qmax);

}  // namespace zsq::cuda_kernels
