// SPDX-License-Identifier: Apache-2.0
// What procedurally generated images are painted with: one image, its colours and its texture, and
// surfaces that fill regions of it.
#pragma once
#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace zsq::generator {

// One surface: its colours, how its brightness changes across, and its piece of the noise.
struct Surface {
  std::vector<double> colour, contrast;  // of each channel, as shares of the range
  double shade = 0;
  std::int64_t row = 0, column = 0;
};

class Canvas {
 public:
  // pixels: f32 [C, H, W], every one of which is to be painted. Draws the image's own colours (a
  // brightness and, near grey, a hue) and its texture: periodic noise with amplitude
  // frequency^-a, a from 0.8 to 1.6.
  Canvas(float* pixels, const std::array<std::int64_t, 3>& shape, std::uint64_t seed);

  // n numbers from [0, 1).
  std::vector<double> uniform(std::int64_t n);

  // `spread`: of its colours about the image's, more alike in hue than in brightness, and of its
  // shade. Its texture deviates by 0.02 to 0.1.
  Surface surface(double spread);
  // With a spread of 1, whose brightness is a quarter of the range or more from the other's.
  Surface beside(const Surface& other);

  // Where inside(x, y, across) is true, of the pixels at most `reach` from (x0, y0) in either
  // direction. It may set `across`: -1 to 1, where between the ends of the shade.
  template <class Inside>
  void fill(const Surface& surface, double x0, double y0, double reach, const Inside& inside) {
    for (std::int64_t y = within(y0 - reach, height_); y < within(y0 + reach + 1, height_); ++y)
      for (std::int64_t x = within(x0 - reach, width_); x < within(x0 + reach + 1, width_); ++x) {
        double across = 0;
        if (inside(static_cast<double>(x), static_cast<double>(y), across))
          put(surface, across, y, x);
      }
  }
  void fill(const Surface& surface);  // all of it

  double width() const { return static_cast<double>(width_); }
  double height() const { return static_cast<double>(height_); }
  double side() const { return static_cast<double>(std::min(height_, width_)); }  // the shorter one

  // Two more numbers from [0, 1), which were drawn with the colours.
  double first_choice() const { return about_[1]; }
  double second_choice() const { return about_[2]; }

 private:
  static std::int64_t within(double v, std::int64_t n) {
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(v), 0, n);
  }
  void put(const Surface& surface, double across, std::int64_t y, std::int64_t x);

  float* pixels_;
  std::int64_t channels_, height_, width_;
  at::Generator draws_;
  std::vector<double> base_, gain_;  // the image's colour, and how strong its texture is in each
  std::vector<double> about_;
  at::Tensor noise_;
  const float* texture_ = nullptr;  // of noise_
};

// Paints image `number` of a seed.
using Painter = std::function<void(std::int64_t number, Canvas& canvas)>;

// f32 [n, C, H, W] for shape = {C, H, W}: images first to first + n - 1 of a seed, values 0 to 1.
// An image depends on its number and the seed alone.
at::Tensor painted(std::int64_t first, std::int64_t n, const std::array<std::int64_t, 3>& shape,
                   std::uint64_t seed, const Painter& paint);

}  // namespace zsq::generator
