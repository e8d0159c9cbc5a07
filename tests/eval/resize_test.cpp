// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/upsample_bicubic2d.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "eval/image.h"
#include "tests/eval/pattern_image.h"
#include "tests/eval/pillow_cases.h"

namespace zsq::eval {
namespace {

TEST(Resize, EqualsPillowInEveryPixel) {
  for (const PillowCase& expected : kPillowCases) {
    const Image result = resize(pattern_image(expected.height, expected.width), expected.new_height,
                                expected.new_width, expected.filter);
    EXPECT_EQ(result.height, expected.new_height);
    EXPECT_EQ(result.width, expected.new_width);
    EXPECT_EQ(result.pixels, expected.pixels) << expected.height << " x " << expected.width;
  }
}

// PyTorch's interpolate without antialias, in its own arithmetic; two roundings here, one there.
TEST(Resize, WithoutAntialiasIsAsPyTorchDoesIt) {
  Image image = pattern_image(9, 13);
  // Far from black and white, where each pass here and only the last one there is cut off.
  for (std::uint8_t& pixel : image.pixels) pixel = static_cast<std::uint8_t>(96 + pixel / 4);
  const at::Tensor planes = at::tensor(at::ArrayRef<std::uint8_t>(image.pixels))
                                .view({1, 9, 13, 3})
                                .permute({0, 3, 1, 2});
  for (const Interpolation filter : {Interpolation::bilinear, Interpolation::bicubic})
    for (const auto& [height, width] : {std::pair{4, 5}, {15, 20}}) {
      const auto as_float = planes.to(at::kFloat).contiguous();
      const std::array<std::int64_t, 2> size{height, width};
      const at::Tensor expected = filter == Interpolation::bilinear
                                      ? at::upsample_bilinear2d(as_float, size, false)
                                      : at::upsample_bicubic2d(as_float, size, false);
      const Image result = resize(image, height, width, filter, /*antialias=*/false);
      const at::Tensor got = at::tensor(at::ArrayRef<std::uint8_t>(result.pixels))
                                 .view({1, height, width, 3})
                                 .permute({0, 3, 1, 2})
                                 .to(at::kFloat);
      // Rounding the first pass may be amplified by the second one's weights, which sum to 1.5.
      EXPECT_LE((got - expected).abs().max().item<float>(), 1.5f);
      EXPECT_EQ(result.pixels == resize(image, height, width, filter).pixels,
                height > 9 && filter == Interpolation::bilinear);
    }
}

#ifdef ZSQ_OPENCV
// INTER_AREA of a whole factor is the mean; INTER_NEAREST takes the first of each pair.
TEST(Resize, OpenCVsArithmetic) {
  Image image{2, 4, {}};
  for (const std::uint8_t grey : {0, 10, 100, 200, 20, 30, 50, 250})
    image.pixels.insert(image.pixels.end(), 3, grey);
  const auto greys = [&](Interpolation filter) {
    const Image half = resize_opencv(image, 1, 2, filter);
    return std::pair<int, int>{half.pixels[0], half.pixels[3]};
  };
  EXPECT_EQ(greys(Interpolation::box), (std::pair{15, 150}));
  EXPECT_EQ(greys(Interpolation::nearest), (std::pair{0, 100}));
  EXPECT_THROW(resize_opencv(image, 1, 2, Interpolation::hamming), Error);
}
#endif

TEST(Resize, SameSizeChangesNothing) {
  const Image image = pattern_image(5, 7);
  EXPECT_EQ(resize(image, 5, 7, Interpolation::bicubic).pixels, image.pixels);
}

TEST(Crop, TakesTheNamedPart) {
  const Image image = pattern_image(5, 7);
  const Image part = crop(image, 1, 2, 3, 4);
  ASSERT_EQ(part.pixels.size(), 3u * 4 * 3);
  EXPECT_EQ(part.pixels[0], image.pixels[(1 * 7 + 2) * 3]);
  EXPECT_EQ(part.pixels.back(), image.pixels[(3 * 7 + 5) * 3 + 2]);
}

TEST(Crop, IsBlackBeyondTheImage) {
  const Image image = pattern_image(2, 2);
  const Image wide = crop(image, 0, -1, 2, 4);
  ASSERT_EQ(wide.pixels.size(), 2u * 4 * 3);
  for (std::size_t y = 0; y < 2; ++y)
    for (std::size_t c = 0; c < 3; ++c) {
      const auto* row = wide.pixels.data() + y * 12;
      EXPECT_EQ(row[c], 0);
      EXPECT_EQ(row[3 + c], image.pixels[y * 6 + c]);
      EXPECT_EQ(row[6 + c], image.pixels[y * 6 + 3 + c]);
      EXPECT_EQ(row[9 + c], 0);
    }
}

}  // namespace
}  // namespace zsq::eval
