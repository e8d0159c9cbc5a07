// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "eval/preprocess.h"
#include "tests/eval/pattern_image.h"

namespace zsq::eval {
namespace {

using Pixels = std::vector<std::uint8_t>;

// By hand from BT.601: Y 81.48, Cb 90.20, Cr 240.00 for red; 254.43, -0.48, -0.97 back.
TEST(Nv12, RedByHand) { EXPECT_EQ(through_nv12({1, 1, {255, 0, 0}}).pixels, (Pixels{254, 0, 0})); }

TEST(Nv12, GreyStaysGrey) {
  for (const std::uint8_t grey : {0, 1, 77, 128, 254, 255}) {
    const Pixels back = through_nv12({1, 1, {grey, grey, grey}}).pixels;
    EXPECT_NEAR(back[0], grey, 1);
    EXPECT_EQ(back[0], back[1]);
    EXPECT_EQ(back[1], back[2]);
  }
}

// Red beside black: each keeps its luma, both get half the chroma; Cb 109.1, Cr 184.
TEST(Nv12, TwoPixelsShareTheirChroma) {
  const Pixels back = through_nv12({1, 2, {255, 0, 0, 0, 0, 0}}).pixels;
  EXPECT_EQ(back, (Pixels{165, 38, 37, 89, 0, 0}));
}

// Five columns: the last one has a pair of rows for itself.
TEST(Nv12, AnOddBorderIsAveragedOverWhatIsThere) {
  const Image image = pattern_image(4, 5);
  const Image whole = through_nv12(image);
  EXPECT_EQ(crop(whole, 0, 4, 4, 1).pixels, through_nv12(crop(image, 0, 4, 4, 1)).pixels);
}

TEST(Nv12, BeforeOrAfterTheResize) {
  PreprocessingOptions keys{.preset = "cifar10"};
  keys.crop_order = CropOrder::stretch;
  const Image image = pattern_image(40, 50);
  const auto ready = [&](ChromaSubsampling way) {
    keys.chroma_subsampling = way;
    return fit(image, resolve(keys, {32, 32}), "x").pixels;
  };
  const Image plain{32, 32, ready(ChromaSubsampling::none)};
  EXPECT_EQ(ready(ChromaSubsampling::nv12_after_resize), through_nv12(plain).pixels);
  EXPECT_EQ(ready(ChromaSubsampling::nv12_before_resize),
            resize(through_nv12(image), 32, 32, Interpolation::bilinear).pixels);
}

}  // namespace
}  // namespace zsq::eval
