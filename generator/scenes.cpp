// SPDX-License-Identifier: Apache-2.0
#include "generator/scenes.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "generator/dead_leaves.h"
#include "generator/drawn_text.h"

namespace zsq::generator {
namespace {

constexpr std::size_t kHarmonics = 4;
constexpr double kPi = std::numbers::pi;

// r(angle) = radius (1 + sum over k of amplitude_k cos((k + 2) angle + phase_k)) about a centre,
// narrower by `flat` across the axis.
struct Outline {
  double x = 0, y = 0, radius = 0, flat = 1, cos = 1, sin = 0;  // of the axis
  std::array<double, kHarmonics> amplitude{}, phase{};
  double reach = 1;  // the largest r / radius

  bool inside(double px, double py, double& across) const {
    const double dx = px - x, dy = py - y;
    const double u = (dx * cos + dy * sin) / radius, v = (dy * cos - dx * sin) / (radius * flat);
    const double r = std::hypot(u, v);
    if (r > reach) return false;
    across = std::clamp(u, -1.0, 1.0);
    const double angle = std::atan2(v, u);
    double edge = 1;
    for (std::size_t k = 0; k < kHarmonics; ++k)
      edge += amplitude[k] * std::cos(static_cast<double>(k + 2) * angle + phase[k]);
    return r < edge;
  }
};

class Scene {
 public:
  explicit Scene(Canvas& canvas) : canvas_(canvas) {}

  void paint() {
    add_background();
    const auto u = canvas_.uniform(3);
    constexpr double kLeast = 0.04, kMost = 0.45;
    auto radii = canvas_.uniform(1 + static_cast<std::int64_t>(9 * u[0] * u[0]));
    for (double& r : radii) r = canvas_.side() * kLeast * std::pow(kMost / kLeast, r);
    std::ranges::sort(radii, std::greater());  // or large ones would hide all others
    for (const double radius : radii) add_object(radius);
    const auto texts = u[1] < 0.4 ? 1 + static_cast<std::int64_t>(3 * u[2]) : 0;
    for (std::int64_t i = 0; i < texts; ++i) paint_text(canvas_);
  }

 private:
  void add_background() {
    canvas_.fill(canvas_.surface(0.5));
    const auto u = canvas_.uniform(2);
    const bool leaves = u[0] >= 0.7;
    const double blots = leaves ? 30 + 120 * u[1] : u[0] < 0.35 ? 3 * u[1] : 4 + 8 * u[1];
    const double smallest = leaves ? 0.03 : 0.15;
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(blots); ++i) {
      const auto p = canvas_.uniform(5);
      const double radius = canvas_.side() * std::min(0.6, smallest / (std::sqrt(p[0]) + 0.05));
      const Outline blot = outline(p[1] * canvas_.width(), p[2] * canvas_.height(), radius,
                                   kPi * p[3], p[4] < 0.5 ? 0.15 : 0, /*mirrored=*/false);
      fill(canvas_.surface(0.7), blot);
    }
  }

  // `tilt` of its axis from upright; `rough`: the largest amplitude.
  Outline outline(double x, double y, double radius, double tilt, double rough, bool mirrored) {
    const auto u = canvas_.uniform(1 + 2 * kHarmonics);
    Outline made{x, y, radius, 0.45 + 0.55 * u[0], std::sin(tilt), -std::cos(tilt)};
    for (std::size_t k = 0; k < kHarmonics; ++k) {
      made.amplitude[k] = rough * (2 * u[1 + k] - 1) / (1 + 0.5 * static_cast<double>(k));
      made.phase[k] = mirrored ? 0 : 2 * kPi * u[1 + kHarmonics + k];
      made.reach += std::abs(made.amplitude[k]);
    }
    return made;
  }

  void fill(const Surface& surface, const Outline& outline) {
    canvas_.fill(surface, outline.x, outline.y, outline.radius * outline.reach,
                 [&](double x, double y, double& across) { return outline.inside(x, y, across); });
  }

  void add_object(double radius) {
    const auto u = canvas_.uniform(9);
    const bool mirrored = u[4] < 0.7;
    const double tilt = (u[2] - 0.5) * (u[3] < 0.2 ? 2 : 0.5);
    const Outline body = outline(u[0] * canvas_.width(), u[1] * canvas_.height(), radius, tilt,
                                 0.3 * u[5], mirrored);
    const Surface surface = canvas_.surface(1.3);
    if (u[6] < 0.5) {
      Outline rim = body;
      rim.radius *= 1.05 + 0.07 * u[7];
      fill(canvas_.beside(surface), rim);
    }
    fill(surface, body);
    const auto parts = static_cast<std::int64_t>(7 * u[8]);
    for (std::int64_t i = 0; i < parts; ++i) add_part(body, surface, mirrored);
  }

  // On the axis, beside it, or in a pair on both sides of it.
  void add_part(const Outline& of, const Surface& body, bool mirrored) {
    const auto u = canvas_.uniform(8);
    const double along = 1.3 * (u[0] - 0.5);
    const double across = mirrored && u[1] < 0.4 ? 0 : 1.1 * (u[2] - 0.5);
    const double tilt = std::atan2(of.cos, -of.sin) + u[4] - 0.5;
    Outline part = outline(0, 0, of.radius * (0.08 + 0.3 * u[3] * u[3]), tilt, 0.2 * u[5], false);
    const Surface surface = canvas_.beside(body), within = canvas_.beside(surface);
    for (const double side : {across, -across}) {
      part.x = of.x + of.radius * (along * of.cos - side * of.flat * of.sin);
      part.y = of.y + of.radius * (along * of.sin + side * of.flat * of.cos);
      fill(surface, part);
      Outline inner = part;
      inner.radius *= 0.3 + 0.4 * u[7];
      if (u[6] < 0.4) fill(within, inner);
      if (!mirrored || across == 0) break;
    }
  }

  Canvas& canvas_;
};

}  // namespace

void paint_objects(Canvas& canvas) { Scene(canvas).paint(); }

at::Tensor scene_images(std::int64_t first, std::int64_t n,
                        const std::array<std::int64_t, 3>& shape, std::uint64_t seed) {
  return painted(first, n, shape, seed, [](std::int64_t number, Canvas& canvas) {
    number % 2 == 0 ? paint_dead_leaves(canvas) : paint_objects(canvas);
  });
}

}  // namespace zsq::generator
