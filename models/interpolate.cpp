// SPDX-License-Identifier: Apache-2.0
#include "models/interpolate.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/matmul.h>

#include <algorithm>
#include <cmath>

namespace zsq::models {
namespace {

// In float, as runtimes calculate it: a place halfway between two values goes where theirs goes.
float place(const Interpolate& op, float o, float n, float m, float s) {
  switch (op.coordinates) {
    case ResizeCoordinates::align_corners:
      return m == 1 ? 0 : o * (n - 1) / (m - 1);
    case ResizeCoordinates::asymmetric:
      return o / s;
    case ResizeCoordinates::pytorch_half_pixel:
      if (m == 1) return 0;
      break;
    case ResizeCoordinates::half_pixel_symmetric:
      return n / 2 * (1 - m / (s * n)) + (o + 0.5F) / s - 0.5F;
    case ResizeCoordinates::tf_half_pixel_for_nn:
      return (o + 0.5F) / s;
    case ResizeCoordinates::half_pixel:
      break;
  }
  return (o + 0.5F) / s - 0.5F;
}

double rounded(NearestRounding rounding, double x) {
  switch (rounding) {
    case NearestRounding::floor:
      return std::floor(x);
    case NearestRounding::ceil:
      return std::ceil(x);
    case NearestRounding::round_prefer_ceil:
      return std::floor(x + 0.5);
    case NearestRounding::round_prefer_floor:
      break;
  }
  return std::ceil(x - 0.5);
}

double triangle(double t) { return std::max(0.0, 1 - std::abs(t)); }

// Keys, "Cubic convolution interpolation for digital image processing", 1981.
double cubic(double t, double a) {
  t = std::abs(t);
  if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

}  // namespace

at::Tensor interpolation_matrix(const Interpolate& op, int axis, std::int64_t in) {
  const auto out = op.size[static_cast<std::size_t>(axis)];
  const auto n = static_cast<double>(in), m = static_cast<double>(out);
  const double given = op.scale[static_cast<std::size_t>(axis)], s = given > 0 ? given : m / n;
  std::vector<float> matrix(static_cast<std::size_t>(in * out), 0.0F);
  for (std::int64_t i = 0; i < out; ++i) {
    float* row = matrix.data() + i * in;
    const double x = place(op, static_cast<float>(i), static_cast<float>(n), static_cast<float>(m),
                           static_cast<float>(s));
    const auto inside = [&](double j) {
      return static_cast<std::int64_t>(std::clamp(j, 0.0, n - 1));
    };
    if (op.mode == InterpolationMode::nearest) {
      row[inside(rounded(op.rounding, x))] = 1;
      continue;
    }
    const bool is_cubic = op.mode == InterpolationMode::cubic;
    const double stretch = op.antialias ? std::max(1.0, 1 / s) : 1;
    const double reach = (is_cubic ? 2 : 1) * stretch;
    double sum = 0;
    std::vector<std::pair<std::int64_t, double>> taps;
    for (double j = std::floor(x - reach) + 1; j < x + reach; ++j) {
      if (op.exclude_outside && (j < 0 || j > n - 1)) continue;
      const double t = (j - x) / stretch;
      const double weight = is_cubic ? cubic(t, op.cubic_coefficient) : triangle(t);
      taps.emplace_back(inside(j), weight);
      sum += weight;
    }
    for (const auto& [j, weight] : taps) row[j] += static_cast<float>(weight / sum);
  }
  return at::from_blob(matrix.data(), {out, in}).clone();
}

at::Tensor interpolate(const Interpolate& op, const at::Tensor& x) {
  const auto rows = interpolation_matrix(op, 0, x.size(2)).to(x.options());
  const auto columns = interpolation_matrix(op, 1, x.size(3)).to(x.options());
  return at::matmul(rows, at::matmul(x, columns.t()));
}

}  // namespace zsq::models
