// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include "eval/image.h"

namespace zsq::eval {
namespace {

using Colour = std::array<double, 3>;

std::uint8_t to_byte(double value) {
  return static_cast<std::uint8_t>(std::clamp(std::lround(value), 0L, 255L));
}

double luma(const std::uint8_t* rgb) {
  return to_byte(0.256788 * rgb[0] + 0.504129 * rgb[1] + 0.097906 * rgb[2] + 16);
}

// Cb and Cr, less the 128 of no colour.
std::array<double, 2> chroma(const Colour& rgb) {
  return {to_byte(-0.148223 * rgb[0] - 0.290993 * rgb[1] + 0.439216 * rgb[2] + 128) - 128.0,
          to_byte(0.439216 * rgb[0] - 0.367788 * rgb[1] - 0.071427 * rgb[2] + 128) - 128.0};
}

void to_rgb(double luma, const std::array<double, 2>& chroma, std::uint8_t* rgb) {
  const double grey = 1.164383 * (luma - 16);
  rgb[0] = to_byte(grey + 1.596027 * chroma[1]);
  rgb[1] = to_byte(grey - 0.391762 * chroma[0] - 0.812968 * chroma[1]);
  rgb[2] = to_byte(grey + 2.017232 * chroma[0]);
}

template <class Visit>
void for_each_pixel(Image& image, std::int64_t top, std::int64_t left, Visit&& visit) {
  for (std::int64_t y = top; y < std::min(top + 2, image.height); ++y)
    for (std::int64_t x = left; x < std::min(left + 2, image.width); ++x)
      visit(image.pixels.data() + 3 * (y * image.width + x));
}

}  // namespace

Image through_nv12(const Image& image) {
  Image result = image;
  for (std::int64_t top = 0; top < image.height; top += 2)
    for (std::int64_t left = 0; left < image.width; left += 2) {
      Colour sum{};
      double pixels = 0;
      for_each_pixel(result, top, left, [&](const std::uint8_t* rgb) {
        for (std::size_t c = 0; c < 3; ++c) sum[c] += rgb[c];
        ++pixels;
      });
      for (double& part : sum) part /= pixels;
      const auto shared = chroma(sum);
      for_each_pixel(result, top, left, [&](std::uint8_t* rgb) { to_rgb(luma(rgb), shared, rgb); });
    }
  return result;
}

}  // namespace zsq::eval
