// SPDX-License-Identifier: Apache-2.0
#include "generator/dead_leaves.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/fft_fftfreq.h>
#include <ATen/ops/fft_irfft2.h>
#include <ATen/ops/fft_rfft2.h>
#include <ATen/ops/fft_rfftfreq.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/seed.h"

namespace zsq::generator {
namespace {

// Colours and places as shares of the range and of the side.
constexpr double kHue = 0.35, kColour = 0.1, kBrightness = 0.2, kShade = 0.15;
constexpr double kContrast = 0.02, kMoreContrast = 0.08;
constexpr double kSmallest = 0.018, kMoreAtMost = 0.072, kLargest = 0.5;

// Periodic, mean 0, variance 1, amplitude frequency^-slope: f32 [H, W].
at::Tensor noise_of(double slope, std::int64_t height, std::int64_t width,
                    const at::Generator& draws) {
  const auto rows = at::fft_fftfreq(height, 1.0, at::kFloat).unsqueeze(1);
  const auto columns = at::fft_rfftfreq(width, 1.0, at::kFloat);
  auto amplitude = rows.square().add(columns.square()).pow(-slope / 2);
  amplitude[0][0] = 0;
  const auto white = at::fft_rfft2(at::randn({height, width}, draws, at::kFloat));
  const auto noise = at::fft_irfft2(white.mul(amplitude), at::IntArrayRef{height, width});
  return noise.div(noise.square().mean().sqrt().clamp_min(1e-12)).contiguous();
}

// One surface: its colours, how its brightness changes across, and its piece of the noise.
struct Surface {
  std::vector<double> colour, contrast;  // of each channel
  double shade = 0;
  std::int64_t row = 0, column = 0;
};

class Canvas {
 public:
  Canvas(float* pixels, const std::array<std::int64_t, 3>& shape, std::uint64_t seed)
      : pixels_(pixels),
        channels_(shape[0]),
        height_(shape[1]),
        width_(shape[2]),
        draws_(at::detail::createCPUGenerator(seed)) {}

  void paint() {
    base_ = uniform(channels_);
    gain_ = uniform(channels_);
    const auto about = uniform(4);
    for (double& channel : base_) channel = std::clamp(about[3] + kHue * (channel - 0.5), 0.0, 1.0);
    noise_ = noise_of(0.8 + 0.8 * about[0], height_, width_, draws_);
    texture_ = noise_.const_data_ptr<float>();
    const double smallest = kSmallest + kMoreAtMost * about[1];
    const auto shapes = static_cast<std::int64_t>(60 + 340 * about[2]);
    const Surface ground = surface(0);
    for (std::int64_t y = 0; y < height_; ++y)
      for (std::int64_t x = 0; x < width_; ++x) put(ground, 0, y, x);
    for (std::int64_t i = 0; i < shapes; ++i) add_shape(smallest);
  }

 private:
  std::vector<double> uniform(std::int64_t n) {
    const auto drawn = at::rand({n}, draws_, at::kFloat);
    return {drawn.const_data_ptr<float>(), drawn.const_data_ptr<float>() + n};
  }

  // `spread`: of its colours about the image's, and of its shade.
  Surface surface(double spread) {
    const auto normal = at::randn({channels_ + 2}, draws_, at::kFloat).mul(spread);
    const float* z = normal.const_data_ptr<float>();
    const auto u = uniform(3);
    Surface made;
    made.shade = kShade * z[channels_ + 1];
    made.row = static_cast<std::int64_t>(u[0] * static_cast<double>(height_));
    made.column = static_cast<std::int64_t>(u[1] * static_cast<double>(width_));
    for (std::size_t c = 0; c < base_.size(); ++c) {
      const double colour = 0.08 + 0.84 * base_[c] + kColour * z[c] + kBrightness * z[channels_];
      made.colour.push_back(std::clamp(colour, 0.0, 1.0));
      made.contrast.push_back((kContrast + kMoreContrast * u[2]) * (0.6 + 0.6 * gain_[c]));
    }
    return made;
  }

  // `across`: -1 to 1, where between its ends.
  void put(const Surface& surface, double across, std::int64_t y, std::int64_t x) {
    const auto place = (y + surface.row) % height_ * width_ + (x + surface.column) % width_;
    const double noise = texture_[place];
    for (std::int64_t c = 0; c < channels_; ++c) {
      const auto i = static_cast<std::size_t>(c);
      const double value = surface.colour[i] * (1 + surface.shade * across);
      pixels_[(c * height_ + y) * width_ + x] =
          static_cast<float>(std::clamp(value + surface.contrast[i] * noise, 0.0, 1.0));
    }
  }

  void add_shape(double smallest) {
    const auto p = uniform(6);
    const Surface made = surface(1);
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
        if (round ? u * u + v * v < 1 : std::max(std::abs(u), std::abs(v)) < 1) put(made, u, y, x);
      }
  }

  float* pixels_;
  std::int64_t channels_, height_, width_;
  at::Generator draws_;
  std::vector<double> base_, gain_;  // the image's colour, and how strong its texture is in each
  at::Tensor noise_;
  const float* texture_ = nullptr;  // of noise_
};

}  // namespace

at::Tensor dead_leaves_images(std::int64_t first, std::int64_t n,
                              const std::array<std::int64_t, 3>& shape, std::uint64_t seed) {
  auto images = at::empty({n, shape[0], shape[1], shape[2]}, at::kFloat);
  float* pixels = images.mutable_data_ptr<float>();
  const std::int64_t image = shape[0] * shape[1] * shape[2];
  at::parallel_for(0, n, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      Canvas(pixels + i * image, shape,
             stream_seed(seed, "images.drawn", static_cast<std::uint64_t>(first + i)))
          .paint();
  });
  return images;
}

}  // namespace zsq::generator
