// SPDX-License-Identifier: Apache-2.0
// The arithmetic of codes, written once for both implementations. Both are compiled without fused
// multiply-add and without fast-math, so every function here gives the same bits on host and
// device. Tie rule: x / scale is a true division, and a quotient exactly between two integers
// rounds to the even one. NaN passes through rounding and clamping; infinities clamp.
#pragma once
#include <cmath>
#include <limits>

#if defined(__CUDACC__)
#define ZSQ_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define ZSQ_HOST_DEVICE inline __attribute__((always_inline))
#endif

namespace zsq::cuda_kernels {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kSmallestNormal = std::numeric_limits<float>::min();

struct CodeRange {
  float min, max;
};

// NaN passes.
ZSQ_HOST_DEVICE float clamp(float v, float lo, float hi) {
  v = v < lo ? lo : v;
  return v > hi ? hi : v;
}

ZSQ_HOST_DEVICE float unclamped_code(float x, float scale, float zero_point) {
  return rintf(x / scale) + zero_point;
}

ZSQ_HOST_DEVICE float code_of(float x, float scale, float zero_point, CodeRange range) {
  return clamp(unclamped_code(x, scale, zero_point), range.min, range.max);
}

ZSQ_HOST_DEVICE float fake_quant_value(float x, float scale, float zero_point, CodeRange range) {
  return (code_of(x, scale, zero_point, range) - zero_point) * scale;
}

// Whether the code was not clamped; false for NaN.
ZSQ_HOST_DEVICE bool inside_range(float x, float scale, float zero_point, CodeRange range) {
  const float code = unclamped_code(x, scale, zero_point);
  return (code >= range.min) & (code <= range.max);
}

// dy/dscale of y = fake_quant_value(x) with the rounding held fixed, which is LSQ's gradient of the
// step (Esser et al. 1902.08153, eq. 3): the rounding error inside, the end of the range outside.
ZSQ_HOST_DEVICE float scale_slope(float x, float scale, float zero_point, CodeRange range) {
  const float ratio = x / scale, code = rintf(ratio) + zero_point;
  const bool inside = (code >= range.min) & (code <= range.max);
  return clamp(code, range.min, range.max) - zero_point - (inside ? ratio : 0.0f);
}

struct ScaleZero {
  float scale, zero_point;
};

ZSQ_HOST_DEVICE ScaleZero grid_of_range(float lo, float hi, CodeRange range, bool symmetric) {
  lo = lo > 0 ? 0.0f : lo;  // NaN passes
  hi = hi < 0 ? 0.0f : hi;
  float scale = (hi - lo) / (range.max - range.min);
  if (symmetric) {
    const float below = range.min < 0 ? lo / range.min : 0.0f;
    const float above = hi / range.max;
    scale = below > above ? below : above;
  }
  if (!(lo - lo == 0 && hi - hi == 0)) return {kNan, kNan};  // not finite
  if (scale < kSmallestNormal) scale = 1.0f;                 // zero width, or denormal
  const float zero_point =
      symmetric ? 0.0f : clamp(range.min - rintf(lo / scale), range.min, range.max);
  return {scale, zero_point};
}

}  // namespace zsq::cuda_kernels
