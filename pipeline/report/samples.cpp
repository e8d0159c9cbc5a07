// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report/samples.h"

#include <algorithm>

#include "eval/preprocess.h"

namespace zsq::pipeline {
namespace {

constexpr std::int64_t kImagesOfStrip = 6, kLargestSide = 80, kGap = 2;
constexpr std::uint8_t kGrey = 128;  // of gaps, on light and on dark pages

eval::Preprocessing own_range(const at::Tensor& images) {
  eval::Preprocessing range;
  const double low = images.min().item<double>(), high = images.max().item<double>();
  range.value_range = {low, high > low ? high : low + 1};
  return range;
}

eval::Image shrunk(const eval::Image& image) {
  const std::int64_t longest = std::max(image.height, image.width);
  if (longest <= kLargestSide) return image;
  const auto side = [&](std::int64_t pixels) {
    return std::max<std::int64_t>(1, pixels * kLargestSide / longest);
  };
  return eval::resize(image, side(image.height), side(image.width), Interpolation::box);
}

}  // namespace

eval::Image sample_strip(const at::Tensor& images,
                         const std::optional<eval::Preprocessing>& preprocessing) {
  if (images.size(1) != 1 && images.size(1) != 3) return {};
  const at::Tensor first = images.slice(0, 0, kImagesOfStrip).detach().to(at::kCPU, at::kFloat);
  const bool colour = images.size(1) == 3;
  const auto pixels = colour && preprocessing ? *preprocessing : own_range(first);
  eval::Image strip;
  for (std::int64_t i = 0; i < first.size(0); ++i) {
    const eval::Image one =
        shrunk(eval::to_pixels(first[i].expand({3, first.size(2), first.size(3)}), pixels));
    if (i == 0) {
      strip = {one.height, first.size(0) * (one.width + kGap) - kGap, {}};
      strip.pixels.assign(static_cast<std::size_t>(3 * strip.height * strip.width), kGrey);
    }
    for (std::int64_t row = 0; row < one.height; ++row)
      std::copy_n(one.pixels.begin() + 3 * row * one.width, 3 * one.width,
                  strip.pixels.begin() + 3 * (row * strip.width + i * (one.width + kGap)));
  }
  return strip;
}

}  // namespace zsq::pipeline
