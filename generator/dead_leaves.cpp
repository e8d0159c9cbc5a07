// SPDX-License-Identifier: Apache-2.0
#include "generator/dead_leaves.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace zsq::generator {
namespace {

// Sizes as shares of the side.
constexpr double kSmallest = 0.018, kMoreAtMost = 0.072, kLargest = 0.5;

void add_leaf(double smallest, Canvas& canvas) {
  const auto p = canvas.uniform(6);
  const Surface made = canvas.surface(1);
  const double radius = canvas.side() * std::min(kLargest, smallest / (std::sqrt(p[0]) + 0.03));
  const double short_radius = radius * (0.4 + 0.6 * p[1]), angle = std::numbers::pi * p[2];
  const double x0 = p[3] * canvas.width(), y0 = p[4] * canvas.height();
  const double cos = std::cos(angle), sin = std::sin(angle);
  const bool round = p[5] < 0.6;
  canvas.fill(made, x0, y0, radius * std::numbers::sqrt2, [&](double x, double y, double& across) {
    const double dx = x - x0, dy = y - y0;
    across = (dx * cos + dy * sin) / radius;
    const double v = (dy * cos - dx * sin) / short_radius;
    return round ? across * across + v * v < 1 : std::max(std::abs(across), std::abs(v)) < 1;
  });
}

}  // namespace

void paint_dead_leaves(Canvas& canvas) {
  const double smallest = kSmallest + kMoreAtMost * canvas.first_choice();
  const auto leaves = static_cast<std::int64_t>(60 + 340 * canvas.second_choice());
  canvas.fill(canvas.surface(0));
  for (std::int64_t i = 0; i < leaves; ++i) add_leaf(smallest, canvas);
}

at::Tensor dead_leaves_images(std::int64_t first, std::int64_t n,
                              const std::array<std::int64_t, 3>& shape, std::uint64_t seed) {
  return painted(first, n, shape, seed,
                 [](std::int64_t, Canvas& canvas) { paint_dead_leaves(canvas); });
}

}  // namespace zsq::generator
