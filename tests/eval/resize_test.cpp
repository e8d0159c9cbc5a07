// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "core/error.h"
#include "eval/image.h"
#include "tests/eval/pillow_cases.h"

namespace zsq::eval {
namespace {

Image pattern_image(std::int64_t height, std::int64_t width) {
  Image image{height, width, {}};
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x)
      for (std::int64_t c = 0; c < 3; ++c)
        image.pixels.push_back(static_cast<std::uint8_t>(x * 97 + y * 61 + c * 85 + x * y * 31));
  return image;
}

TEST(Resize, EqualsPillowInEveryPixel) {
  for (const PillowCase& expected : kPillowCases) {
    const Image result = resize(pattern_image(expected.height, expected.width), expected.new_height,
                                expected.new_width, expected.filter);
    EXPECT_EQ(result.height, expected.new_height);
    EXPECT_EQ(result.width, expected.new_width);
    EXPECT_EQ(result.pixels, expected.pixels) << expected.height << " x " << expected.width;
  }
}

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
  EXPECT_THROW(crop(image, 3, 0, 3, 4), Error);
}

}  // namespace
}  // namespace zsq::eval
