// SPDX-License-Identifier: Apache-2.0
#include "generator/drawn_text.h"

#include <cmath>

namespace zsq::generator {
namespace {

struct Letter {
  double x, y, width, height;  // left, top
  double half;                 // of the thickness of a stroke
};

// From one point to another.
void paint_bar(const Surface& ink, double xa, double ya, double xb, double yb, double half,
               Canvas& canvas) {
  const double between = std::hypot(xb - xa, yb - ya), length = between / 2 + half;
  const double x = (xa + xb) / 2, y = (ya + yb) / 2;
  const double cos = (xb - xa) / between, sin = (yb - ya) / between;
  canvas.fill(ink, x, y, length + half, [&](double px, double py, double&) {
    const double along = (px - x) * cos + (py - y) * sin, off = (py - y) * cos - (px - x) * sin;
    return std::abs(along) <= length && std::abs(off) <= half;
  });
}

void paint_ring(const Surface& ink, double x, double y, double radius, double half,
                Canvas& canvas) {
  canvas.fill(ink, x, y, radius + half, [&](double px, double py, double&) {
    return std::abs(std::hypot(px - x, py - y) - radius) <= half;
  });
}

// `kind`, `place`: from [0, 1).
void paint_stroke(const Surface& ink, const Letter& of, double kind, double place, Canvas& canvas) {
  const double level = std::floor(3 * place) / 2;  // 0, a half, 1
  const double right = of.x + of.width, bottom = of.y + of.height;
  if (kind < 0.35) {
    const double x = of.x + level * of.width;
    paint_bar(ink, x, of.y, x, bottom, of.half, canvas);
  } else if (kind < 0.65) {
    const double y = of.y + level * of.height;
    paint_bar(ink, of.x, y, right, y, of.half, canvas);
  } else if (kind < 0.8) {
    const bool falls = place < 0.5;
    paint_bar(ink, of.x, falls ? of.y : bottom, right, falls ? bottom : of.y, of.half, canvas);
  } else {
    const double y = of.y + of.height * (place < 0.5 ? 0.3 : 0.7);
    paint_ring(ink, of.x + of.width / 2, y, of.width / 2, of.half, canvas);
  }
}

void paint_letter(const Surface& ink, const Letter& letter, Canvas& canvas) {
  const auto u = canvas.uniform(9);
  const auto strokes = 2 + static_cast<std::size_t>(2.5 * u[8]);
  for (std::size_t i = 0; i < strokes; ++i)
    paint_stroke(ink, letter, u[2 * i], u[2 * i + 1], canvas);
}

}  // namespace

void paint_text(Canvas& canvas) {
  const auto u = canvas.uniform(8);
  const double height = canvas.side() * 0.025 * std::pow(8, u[0] * u[0]);
  const double width = height * (0.4 + 0.4 * u[1]), step = 1.35 * width, line_step = 1.6 * height;
  const double half = std::max(0.5, height * (0.05 + 0.06 * u[2]));
  const auto letters = 2 + static_cast<std::int64_t>(14 * u[3]);
  const auto lines = 1 + static_cast<std::int64_t>(4 * u[4] * u[4]);
  const double left = u[5] * canvas.width() - width, top = u[6] * canvas.height();
  const Surface plate = canvas.surface(1), ink = canvas.beside(plate);
  if (u[7] < 0.6) {
    const double half_width = static_cast<double>(letters) * step / 2;
    const double half_height = static_cast<double>(lines) * line_step / 2;
    const double x = left + half_width, y = top + half_height - 0.3 * height;
    canvas.fill(plate, x, y, half_width + half_height + height, [&](double px, double py, double&) {
      return std::abs(px - x) <= half_width + height / 2 &&
             std::abs(py - y) <= half_height + height / 4;
    });
  }
  constexpr double kSpaces = 0.12;
  for (std::int64_t line = 0; line < lines; ++line)
    for (std::int64_t i = 0; i < letters; ++i) {
      const Letter letter{left + static_cast<double>(i) * step,
                          top + static_cast<double>(line) * line_step, width, height, half};
      if (canvas.uniform(1)[0] > kSpaces) paint_letter(ink, letter, canvas);
    }
}

}  // namespace zsq::generator
