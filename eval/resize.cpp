// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"
#include "eval/image.h"

namespace zsq::eval {
namespace {

constexpr int kFractionBits = 22;
constexpr std::int64_t kChannels = 3;

double sinc(double x) {
  x *= std::numbers::pi;
  return x == 0 ? 1 : std::sin(x) / x;
}

double keys_cubic(double x, double a) {
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return a * (((x - 5) * x + 8) * x - 4);
  return 0;
}

struct Filter {
  double support;
  double (*weight)(double);
};

Filter filter_of(Interpolation name, bool antialias) {
  switch (name) {
    case Interpolation::nearest:
    case Interpolation::box:
      return {0.5, [](double x) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }};
    case Interpolation::bilinear:
      return {1, [](double x) { return std::max(0.0, 1.0 - std::abs(x)); }};
    case Interpolation::hamming:
      return {1, [](double x) {
                return std::abs(x) < 1 ? sinc(x) * (0.54 + 0.46 * std::cos(std::numbers::pi * x))
                                       : 0.0;
              }};
    case Interpolation::bicubic:
      return antialias ? Filter{2, [](double x) { return keys_cubic(x, -0.5); }}
                       : Filter{2, [](double x) { return keys_cubic(x, -0.75); }};
    case Interpolation::lanczos:
      return {3, [](double x) { return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0.0; }};
  }
  throw Error(ErrorCode::internal, "an interpolation without a filter");
}

// The input samples that one output sample is made of, and their fixed-point weights.
struct Window {
  std::int64_t first = 0;
  std::vector<std::int32_t> weights;
};

Window window(const Filter& filter, double center, double stretch, std::int64_t in,
              bool antialias) {
  const double support = filter.support * stretch, narrow = 1 / stretch;
  auto begin = static_cast<std::int64_t>(std::floor(center - support + 0.5));
  auto end = static_cast<std::int64_t>(std::floor(center + support + 0.5));
  if (antialias) {
    begin = std::max<std::int64_t>(0, begin);
    end = std::min(in, end);
  }
  Window result{std::max<std::int64_t>(0, begin), {}};
  std::vector<double> weights(static_cast<std::size_t>(std::min(in, end) - result.first));
  double sum = 0;
  for (std::int64_t j = begin; j < end; ++j) {
    const double weight = filter.weight((static_cast<double>(j) - center + 0.5) * narrow);
    const auto inside = std::clamp<std::int64_t>(j, 0, in - 1);
    weights[static_cast<std::size_t>(inside - result.first)] += weight;
    sum += weight;
  }
  for (const double weight : weights)
    result.weights.push_back(
        static_cast<std::int32_t>(std::round(weight / sum * (1 << kFractionBits))));
  return result;
}

std::vector<Window> windows(std::int64_t in, std::int64_t out, Interpolation name, bool antialias) {
  const Filter filter = filter_of(name, antialias);
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  const double stretch = antialias ? std::max(1.0, scale) : 1.0;
  std::vector<Window> result;
  for (std::int64_t i = 0; i < out; ++i)
    result.push_back(
        window(filter, (static_cast<double>(i) + 0.5) * scale, stretch, in, antialias));
  return result;
}

// One sample each; the position is summed up as Pillow does it.
std::vector<Window> nearest_windows(std::int64_t in, std::int64_t out) {
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  std::vector<Window> result;
  double position = scale * 0.5;
  for (std::int64_t i = 0; i < out; ++i, position += scale)
    result.push_back({std::min(in - 1, static_cast<std::int64_t>(position)), {1 << kFractionBits}});
  return result;
}

// Resamples the middle dimension of [outer, in, inner] bytes.
std::vector<std::uint8_t> resample(const std::vector<std::uint8_t>& source, std::int64_t outer,
                                   std::int64_t in, std::int64_t out, std::int64_t inner,
                                   Interpolation filter, bool antialias) {
  const std::vector<Window> plan = filter == Interpolation::nearest
                                       ? nearest_windows(in, out)
                                       : windows(in, out, filter, antialias);
  std::vector<std::uint8_t> result(static_cast<std::size_t>(outer * out * inner));
  std::vector<std::int32_t> sums(static_cast<std::size_t>(inner));
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < out; ++i) {
      const Window& window = plan[static_cast<std::size_t>(i)];
      std::fill(sums.begin(), sums.end(), 1 << (kFractionBits - 1));
      const std::uint8_t* row = source.data() + (o * in + window.first) * inner;
      for (const std::int32_t weight : window.weights) {
        for (std::int64_t k = 0; k < inner; ++k)
          sums[static_cast<std::size_t>(k)] += row[k] * weight;
        row += inner;
      }
      std::uint8_t* to = result.data() + (o * out + i) * inner;
      for (std::int64_t k = 0; k < inner; ++k)
        to[k] = static_cast<std::uint8_t>(
            std::clamp(sums[static_cast<std::size_t>(k)] >> kFractionBits, 0, 255));
    }
  return result;
}

}  // namespace

Image resize(const Image& image, std::int64_t height, std::int64_t width, Interpolation filter,
             bool antialias) {
  Image result{height, width, image.pixels};
  if (width != image.width)
    result.pixels =
        resample(result.pixels, image.height, image.width, width, kChannels, filter, antialias);
  if (height != image.height)
    result.pixels =
        resample(result.pixels, 1, image.height, height, width * kChannels, filter, antialias);
  return result;
}

Image crop(const Image& image, std::int64_t top, std::int64_t left, std::int64_t height,
           std::int64_t width, std::uint8_t grey) {
  Image result{height, width, {}};
  result.pixels.resize(static_cast<std::size_t>(height * width * kChannels), grey);
  const auto begin = std::max<std::int64_t>(0, left), end = std::min(image.width, left + width);
  for (std::int64_t y = std::max<std::int64_t>(0, top); y < std::min(image.height, top + height);
       ++y)
    if (begin < end)
      std::copy_n(image.pixels.begin() + (y * image.width + begin) * kChannels,
                  (end - begin) * kChannels,
                  result.pixels.begin() + ((y - top) * width + begin - left) * kChannels);
  return result;
}

}  // namespace zsq::eval
