// SPDX-License-Identifier: Apache-2.0
#include "generator/draw_images.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace zsq::generator {
namespace {

// Colours and places as shares of the range and of the side.
constexpr double kColour = 0.24, kBrightness = 0.1, kShade = 0.15, kNoise = 0.05;
constexpr double kSmallest = 0.018, kMoreAtMost = 0.072, kLargest = 0.5;

class Canvas {
 public:
  Canvas(float* pixels, const std::array<std::int64_t, 3>& shape, const at::Generator& draws)
      : pixels_(pixels), channels_(shape[0]), height_(shape[1]), width_(shape[2]), draws_(draws) {}

  void paint() {
    const auto base = uniform(channels_ + 2);
    const float* b = base.const_data_ptr<float>();
    for (std::int64_t c = 0; c < channels_; ++c)
      std::fill_n(pixels_ + c * height_ * width_, height_ * width_, 0.08f + 0.84f * b[c]);
    const double smallest = kSmallest + kMoreAtMost * b[channels_];
    const auto count = 60 + static_cast<std::int64_t>(340 * b[channels_ + 1]);
    const auto places = uniform(6 * count), colours = normal((channels_ + 2) * count);
    for (std::int64_t i = 0; i < count; ++i)
      shape(places.const_data_ptr<float>() + 6 * i,
            colours.const_data_ptr<float>() + (channels_ + 2) * i, b, smallest);
    const auto noise = normal(channels_ * height_ * width_);
    const float* grain = noise.const_data_ptr<float>();
    for (std::int64_t i = 0; i < noise.numel(); ++i)
      pixels_[i] = std::clamp(pixels_[i] + static_cast<float>(kNoise) * grain[i], 0.0f, 1.0f);
  }

 private:
  at::Tensor uniform(std::int64_t n) const { return at::rand({n}, draws_, at::kFloat); }
  at::Tensor normal(std::int64_t n) const { return at::randn({n}, draws_, at::kFloat); }

  // p: six uniform draws. z: normal ones for the channels, for all of them, for the shade.
  void shape(const float* p, const float* z, const float* base, double smallest) {
    const double side = static_cast<double>(std::min(height_, width_));
    const double radius = side * std::min(kLargest, smallest / (std::sqrt(p[0]) + 0.03));
    const double short_radius = radius * (0.4 + 0.6 * p[1]), angle = std::numbers::pi * p[2];
    const double x0 = p[3] * static_cast<double>(width_), y0 = p[4] * static_cast<double>(height_);
    const double cos = std::cos(angle), sin = std::sin(angle), reach = radius * std::numbers::sqrt2;
    const bool round = p[5] < 0.6;
    const auto within = [](double v, std::int64_t n) {
      return std::clamp<std::int64_t>(static_cast<std::int64_t>(v), 0, n);
    };
    for (std::int64_t y = within(y0 - reach, height_); y < within(y0 + reach + 1, height_); ++y)
      for (std::int64_t x = within(x0 - reach, width_); x < within(x0 + reach + 1, width_); ++x) {
        const double dx = static_cast<double>(x) - x0, dy = static_cast<double>(y) - y0;
        const double u = (dx * cos + dy * sin) / radius, v = (dy * cos - dx * sin) / short_radius;
        if (round ? u * u + v * v >= 1 : std::max(std::abs(u), std::abs(v)) >= 1) continue;
        for (std::int64_t c = 0; c < channels_; ++c) {
          const double colour = 0.08 + 0.84 * base[c] + kColour * z[c] + kBrightness * z[channels_];
          pixels_[(c * height_ + y) * width_ + x] = static_cast<float>(
              std::clamp(colour, 0.0, 1.0) * (1 + kShade * z[channels_ + 1] * u));
        }
      }
  }

  float* pixels_;
  std::int64_t channels_, height_, width_;
  const at::Generator& draws_;
};

}  // namespace

at::Tensor draw_images(std::int64_t n, const std::array<std::int64_t, 3>& shape,
                       std::pair<double, double> range, std::uint64_t seed) {
  const auto draws = at::detail::createCPUGenerator(seed);
  auto images = at::empty({n, shape[0], shape[1], shape[2]}, at::kFloat);
  for (std::int64_t i = 0; i < n; ++i)
    Canvas(images.mutable_data_ptr<float>() + i * shape[0] * shape[1] * shape[2], shape, draws)
        .paint();
  return images.mul_(range.second - range.first).add_(range.first);
}

}  // namespace zsq::generator
