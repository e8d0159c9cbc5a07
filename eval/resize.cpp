// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "eval/image.h"

namespace zsq::eval {
namespace {

constexpr int kFractionBits = 22;
constexpr std::int64_t kChannels = 3;

double triangle(double x) { return std::max(0.0, 1.0 - std::abs(x)); }

double keys_cubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return a * (((x - 5) * x + 8) * x - 4);
  return 0;
}

// The input samples that one output sample is made of, and their fixed-point weights.
struct Window {
  std::int64_t first = 0;
  std::vector<std::int32_t> weights;
};

std::vector<Window> windows(std::int64_t in, std::int64_t out, Interpolation filter) {
  const bool cubic = filter == Interpolation::bicubic;
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  const double stretch = std::max(1.0, scale);
  const double support = (cubic ? 2.0 : 1.0) * stretch;
  std::vector<Window> result(static_cast<std::size_t>(out));
  for (std::int64_t i = 0; i < out; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    const auto begin = std::max<std::int64_t>(0, static_cast<std::int64_t>(center - support + 0.5));
    const auto end = std::min<std::int64_t>(in, static_cast<std::int64_t>(center + support + 0.5));
    std::vector<double> weights;
    double sum = 0;
    for (std::int64_t j = begin; j < end; ++j) {
      const double x = (static_cast<double>(j) - center + 0.5) / stretch;
      weights.push_back(cubic ? keys_cubic(x) : triangle(x));
      sum += weights.back();
    }
    Window& window = result[static_cast<std::size_t>(i)];
    window.first = begin;
    for (const double weight : weights)
      window.weights.push_back(
          static_cast<std::int32_t>(std::round(weight / sum * (1 << kFractionBits))));
  }
  return result;
}

// Resamples the middle dimension of [outer, in, inner] bytes.
std::vector<std::uint8_t> resample(const std::vector<std::uint8_t>& source, std::int64_t outer,
                                   std::int64_t in, std::int64_t out, std::int64_t inner,
                                   Interpolation filter) {
  const std::vector<Window> plan = windows(in, out, filter);
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

Image resize(const Image& image, std::int64_t height, std::int64_t width, Interpolation filter) {
  Image result{height, width, image.pixels};
  if (width != image.width)
    result.pixels = resample(result.pixels, image.height, image.width, width, kChannels, filter);
  if (height != image.height)
    result.pixels = resample(result.pixels, 1, image.height, height, width * kChannels, filter);
  return result;
}

Image crop(const Image& image, std::int64_t top, std::int64_t left, std::int64_t height,
           std::int64_t width) {
  if (top < 0 || left < 0 || top + height > image.height || left + width > image.width)
    throw Error(ErrorCode::internal, "crop outside the image");
  Image result{height, width, {}};
  result.pixels.reserve(static_cast<std::size_t>(height * width * kChannels));
  for (std::int64_t y = top; y < top + height; ++y) {
    const auto row = image.pixels.begin() + (y * image.width + left) * kChannels;
    result.pixels.insert(result.pixels.end(), row, row + width * kChannels);
  }
  return result;
}

}  // namespace zsq::eval
