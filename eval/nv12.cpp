// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include "core/bt601.h"
#include "eval/image.h"

namespace zsq::eval {
namespace {

using Colour = std::array<double, 3>;

std::uint8_t to_byte(double value) {
  return static_cast<std::uint8_t>(std::clamp(std::lround(value), 0L, 255L));
}

template <class Rgb>
double weighted(const Rgb& rgb, const std::array<double, 3>& weights) {
  return weights[0] * rgb[0] + weights[1] * rgb[1] + weights[2] * rgb[2];
}

double bt601_luma(const std::uint8_t* rgb) {
  return to_byte(weighted(rgb, bt601::kLuma) + bt601::kBlack);
}

// Cb and Cr, less what they are without colour.
std::array<double, 2> chroma(const Colour& rgb) {
  const auto of = [&](const std::array<double, 3>& weights) {
    return to_byte(weighted(rgb, weights) + bt601::kNoColour) - bt601::kNoColour;
  };
  return {of(bt601::kCb), of(bt601::kCr)};
}

void to_rgb(double luma, const std::array<double, 2>& chroma, std::uint8_t* rgb) {
  const double grey = bt601::kGrey * (luma - bt601::kBlack);
  rgb[0] = to_byte(grey + bt601::kRedOfCr * chroma[1]);
  rgb[1] = to_byte(grey - bt601::kGreenOfCb * chroma[0] - bt601::kGreenOfCr * chroma[1]);
  rgb[2] = to_byte(grey + bt601::kBlueOfCb * chroma[0]);
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
      for_each_pixel(result, top, left,
                     [&](std::uint8_t* rgb) { to_rgb(bt601_luma(rgb), shared, rgb); });
    }
  return result;
}

}  // namespace zsq::eval
