// SPDX-License-Identifier: Apache-2.0
#include "tests/support/shape_images.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

namespace zsq::test {
namespace {

constexpr std::int64_t kSize = 16;  // pixels

// Whether the point (x, y) of the shape's own frame, where the shape fills [-1, 1]^2, is inked.
bool inside(std::int64_t shape, double x, double y) {
  const double radius = std::hypot(x, y), far = std::max(std::abs(x), std::abs(y));
  const double near = std::min(std::abs(x), std::abs(y));
  switch (shape) {
    case 0:
      return radius < 1;
    case 1:
      return radius > 0.62 && radius < 1.1;
    case 2:
      return far < 0.9;
    case 3:
      return far > 0.58 && far < 1;
    case 4:
      return y < 0.85 && y > 2 * std::abs(x) - 1;
    case 5:
      return near < 0.28 && far < 1;
    case 6:
      return std::abs(std::abs(x) - std::abs(y)) < 0.36 && far < 1;
    default:
      return far < 1 && std::fmod(y + 1, 0.8) < 0.42;
  }
}

class ShapePainter {
 public:
  explicit ShapePainter(std::uint64_t seed) : random_(seed) {}

  void paint(std::int64_t shape, float* image) {
    const double half = uniform(4.5, 7), x0 = uniform(half - 0.5, kSize - half - 0.5),
                 y0 = uniform(half - 0.5, kSize - half - 0.5);
    std::array<double, 3> ink{}, paper{};
    double contrast = 0;
    while (contrast < 1.1) {
      contrast = 0;
      for (int c = 0; c < 3; ++c) {
        ink[c] = uniform(0, 1);
        paper[c] = uniform(0, 1);
        contrast += std::abs(ink[c] - paper[c]);
      }
    }
    for (int c = 0; c < 3; ++c) {
      for (std::int64_t y = 0; y < kSize; ++y) {
        for (std::int64_t x = 0; x < kSize; ++x) {
          const bool inked = inside(shape, (x - x0) / half, (y - y0) / half);
          const double pixel = (inked ? ink[c] : paper[c]) + 0.08 * normal_(random_);
          *image++ = static_cast<float>((std::clamp(pixel, 0.0, 1.0) - 0.5) / 0.25);
        }
      }
    }
  }

 private:
  double uniform(double lo, double hi) {
    return std::uniform_real_distribution<double>(lo, hi)(random_);
  }
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
};

}  // namespace

ShapeImages draw_shapes(std::int64_t n, std::uint64_t seed) {
  ShapeImages data{at::empty({n, 3, kSize, kSize}), at::empty({n}, at::kLong)};
  ShapePainter painter(seed);
  for (std::int64_t i = 0; i < n; ++i) {
    data.labels.data_ptr<std::int64_t>()[i] = i % kShapeClasses;
    painter.paint(i % kShapeClasses, data.images.data_ptr<float>() + i * 3 * kSize * kSize);
  }
  return data;
}

}  // namespace zsq::test
