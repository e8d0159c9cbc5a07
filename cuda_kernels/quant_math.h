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

// A grid of weights: all that rounding, gradient inundation and the exporters ask of a number
// format. A code is an integer; codes are in the order of their values. Another format is another
// type with these functions (and a name in quant/number_format.h); of this one, levels are a scale
// apart.
struct UniformGrid {
  float scale, zero_point;
  CodeRange range;

  // The code of the nearest value; NaN passes.
  ZSQ_HOST_DEVICE float encode(float x) const {
    return clamp(rintf(x / scale) + zero_point, range.min, range.max);
  }
  ZSQ_HOST_DEVICE float decode(float code) const { return (code - zero_point) * scale; }
  // Where the code gives way to its neighbour above (direction 1) or below (-1).
  ZSQ_HOST_DEVICE float next_threshold(float code, float direction) const {
    return (code - zero_point + 0.5f * direction) * scale;
  }
  // How many codes there are in that direction; NaN for NaN.
  ZSQ_HOST_DEVICE float room(float code, float direction) const {
    return direction > 0 ? range.max - code : code - range.min;
  }
  // Whether the code is not clamped; false for NaN.
  ZSQ_HOST_DEVICE bool contains(float x) const {
    const float code = rintf(x / scale) + zero_point;
    return (code >= range.min) & (code <= range.max);
  }
  // dy/dscale of y = decode(encode(x)) with the rounding held fixed, which is LSQ's gradient of the
  // step (Esser et al. 1902.08153, eq. 3): the rounding error inside, the end of the range outside.
  ZSQ_HOST_DEVICE float scale_slope(float x) const {
    const float ratio = x / scale, code = rintf(ratio) + zero_point;
    const bool inside = (code >= range.min) & (code <= range.max);
    return clamp(code, range.min, range.max) - zero_point - (inside ? ratio : 0.0f);
  }
};

template <class Grid>
ZSQ_HOST_DEVICE float fake_quant_value(float x, const Grid& grid) {
  return grid.decode(grid.encode(x));
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
