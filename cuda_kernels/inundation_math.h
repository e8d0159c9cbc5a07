// SPDX-License-Identifier: Apache-2.0
// The arithmetic of inundation.h, once for both implementations; quant_math.h says how it is
// compiled.
#pragma once
#include "cuda_kernels/quant_math.h"

namespace zsq::cuda_kernels {

struct InundationStep {
  float lr, momentum, k_max, c_max;
};

ZSQ_HOST_DEVICE float next_velocity(float velocity, float gradient, float momentum) {
  return momentum * velocity + gradient;
}

// D, from the velocity after its update.
ZSQ_HOST_DEVICE float nesterov_step(float velocity, float gradient, InundationStep args) {
  return args.lr * (gradient + args.momentum * velocity);
}

ZSQ_HOST_DEVICE bool is_finite(float v) { return v - v == 0; }

// A weight moved three units in the last place (of the threshold) past its threshold has the other
// code for certain: the threshold and w / scale are each rounded once.
constexpr float kPastThreshold = 3 * std::numeric_limits<float>::epsilon();
// Covers the roundings of the ratio, of k and of k * D, under 2^-21 together.
constexpr float kRatioSlack = 1.0f + 1.0f / (1 << 20);

// d / |step|: d is the distance from w to the next threshold in the direction of -step, 0 on the
// threshold itself. Infinite, never NaN, if there is none: no step, or the code is at the end of
// its range that way, or w is NaN. `past` widens d by that multiple of the threshold's magnitude.
template <class Grid>
ZSQ_HOST_DEVICE float crossing_ratio(float w, float step, const Grid& grid, float past) {
  const float direction = step > 0 ? -1.0f : 1.0f;
  const float code = grid.encode(w);
  const float threshold = grid.next_threshold(code, direction);
  const float gap = (threshold - w) * direction;
  const float distance = (gap > 0 ? gap : 0.0f) + past * fabsf(threshold);
  const float room = grid.room(code, direction);
  const float ratio = distance / fabsf(step);
  return ((room > 0) & (ratio >= 0)) ? ratio : kInfinity;
}

// k, from the m-th smallest ratio.
ZSQ_HOST_DEVICE float inundation_factor(float ratio, float k_max) {
  const float k = ratio * kRatioSlack;
  return clamp(k, 1.0f, k_max);
}

ZSQ_HOST_DEVICE float inundated_weight(float w, float step, float k, float limit) {
  return w - clamp(k * step, -limit, limit);
}

}  // namespace zsq::cuda_kernels
