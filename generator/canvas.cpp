// SPDX-License-Identifier: Apache-2.0
#include "generator/canvas.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/fft_fftfreq.h>
#include <ATen/ops/fft_irfft2.h>
#include <ATen/ops/fft_rfft2.h>
#include <ATen/ops/fft_rfftfreq.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>

#include <cmath>
#include <numeric>

#include "core/seed.h"

namespace zsq::generator {
namespace {

// Colours as shares of the range.
constexpr double kHue = 0.35, kColour = 0.1, kBrightness = 0.2, kShade = 0.15;
constexpr double kContrast = 0.02, kMoreContrast = 0.08;

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

}  // namespace

Canvas::Canvas(float* pixels, const std::array<std::int64_t, 3>& shape, std::uint64_t seed)
    : pixels_(pixels),
      channels_(shape[0]),
      height_(shape[1]),
      width_(shape[2]),
      draws_(at::detail::createCPUGenerator(seed)) {
  base_ = uniform(channels_);
  gain_ = uniform(channels_);
  about_ = uniform(4);
  for (double& channel : base_) channel = std::clamp(about_[3] + kHue * (channel - 0.5), 0.0, 1.0);
  noise_ = noise_of(0.8 + 0.8 * about_[0], height_, width_, draws_);
  texture_ = noise_.const_data_ptr<float>();
}

std::vector<double> Canvas::uniform(std::int64_t n) {
  const auto drawn = at::rand({n}, draws_, at::kFloat);
  return {drawn.const_data_ptr<float>(), drawn.const_data_ptr<float>() + n};
}

Surface Canvas::surface(double spread) {
  const auto normal = at::randn({channels_ + 2}, draws_, at::kFloat).mul(spread);
  const float* z = normal.const_data_ptr<float>();
  const auto u = uniform(3);
  Surface made;
  made.shade = kShade * z[channels_ + 1];
  made.row = static_cast<std::int64_t>(u[0] * height());
  made.column = static_cast<std::int64_t>(u[1] * width());
  for (std::size_t c = 0; c < base_.size(); ++c) {
    const double colour = 0.08 + 0.84 * base_[c] + kColour * z[c] + kBrightness * z[channels_];
    made.colour.push_back(std::clamp(colour, 0.0, 1.0));
    made.contrast.push_back((kContrast + kMoreContrast * u[2]) * (0.6 + 0.6 * gain_[c]));
  }
  return made;
}

Surface Canvas::beside(const Surface& other) {
  constexpr double kLeast = 0.25;
  const auto brightness = [](const Surface& of) {
    return std::accumulate(of.colour.begin(), of.colour.end(), 0.0) /
           static_cast<double>(of.colour.size());
  };
  Surface made = surface(1);
  const double there = brightness(other), gap = brightness(made) - there;
  if (std::abs(gap) >= kLeast) return made;
  const double shift = (there > 0.5 ? -kLeast : kLeast) - gap;
  for (double& colour : made.colour) colour = std::clamp(colour + shift, 0.0, 1.0);
  return made;
}

void Canvas::fill(const Surface& surface) {
  for (std::int64_t y = 0; y < height_; ++y)
    for (std::int64_t x = 0; x < width_; ++x) put(surface, 0, y, x);
}

void Canvas::put(const Surface& surface, double across, std::int64_t y, std::int64_t x) {
  const auto place = (y + surface.row) % height_ * width_ + (x + surface.column) % width_;
  const double noise = texture_[place];
  for (std::int64_t c = 0; c < channels_; ++c) {
    const auto i = static_cast<std::size_t>(c);
    const double value = surface.colour[i] * (1 + surface.shade * across);
    pixels_[(c * height_ + y) * width_ + x] =
        static_cast<float>(std::clamp(value + surface.contrast[i] * noise, 0.0, 1.0));
  }
}

at::Tensor painted(std::int64_t first, std::int64_t n, const std::array<std::int64_t, 3>& shape,
                   std::uint64_t seed, const Painter& paint) {
  auto images = at::empty({n, shape[0], shape[1], shape[2]}, at::kFloat);
  float* pixels = images.mutable_data_ptr<float>();
  const std::int64_t image = shape[0] * shape[1] * shape[2];
  at::parallel_for(0, n, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      Canvas canvas(pixels + i * image, shape,
                    stream_seed(seed, "images.drawn", static_cast<std::uint64_t>(first + i)));
      paint(first + i, canvas);
    }
  });
  return images;
}

}  // namespace zsq::generator
