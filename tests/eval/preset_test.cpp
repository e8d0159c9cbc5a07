// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "core/error.h"
#include "eval/preprocess.h"

namespace zsq::eval {
namespace {

Image grey_image(std::int64_t height, std::int64_t width, std::uint8_t value) {
  return {height, width,
          std::vector<std::uint8_t>(static_cast<std::size_t>(height * width * 3), value)};
}

TEST(Preset, NamesTheNearestWhereUnknown) {
  try {
    preset("torchvison");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_NE(std::string(error.what()).find("did you mean 'torchvision'"), std::string::npos);
  }
}

TEST(Preset, ValueRangeIsTheRangeOfPreprocessedBlackAndWhite) {
  for (const std::string& name : preset_names()) {
    const Preset& known = preset(name);
    const at::Tensor black = preprocess(grey_image(known.size, known.size, 0), known, name);
    const at::Tensor white = preprocess(grey_image(known.size, known.size, 255), known, name);
    EXPECT_FLOAT_EQ(black.min().item<float>(), static_cast<float>(known.value_range().first));
    EXPECT_FLOAT_EQ(white.max().item<float>(), static_cast<float>(known.value_range().second));
    EXPECT_EQ(white.sizes(), at::IntArrayRef({3, known.size, known.size}));
  }
}

TEST(Preprocess, EfficientNetLiteValuesAreExact) {
  const at::Tensor x = preprocess(grey_image(300, 260, 200), preset("efficientnet_lite0"), "grey");
  EXPECT_EQ(x.min().item<float>(), (200 - 127) / 128.0f);
  EXPECT_EQ(x.max().item<float>(), (200 - 127) / 128.0f);
}

// A white column at the centre of a wide image stays at the centre, and no margin of the crop
// shows.
TEST(Preprocess, CropsTheCentre) {
  for (const std::string name : {"torchvision", "efficientnet_lite0"}) {
    Image image = grey_image(256, 512, 0);
    for (std::int64_t y = 0; y < 256; ++y)
      for (std::int64_t k = (y * 512 + 252) * 3; k < (y * 512 + 260) * 3; ++k)
        image.pixels[static_cast<std::size_t>(k)] = 255;
    const at::Tensor row = preprocess(image, preset(name), name)[0][112];
    EXPECT_GT(row[111].item<float>(), 0.5f) << name;
    EXPECT_EQ(row[111].item<float>(), row[112].item<float>()) << name;
    EXPECT_LT(row[100].item<float>(), 0.0f) << name;
    EXPECT_LT(row[123].item<float>(), 0.0f) << name;
  }
}

TEST(Preprocess, KeepsTheChannelsInOrder) {
  Image image = grey_image(32, 32, 0);
  image.pixels[1] = 255;  // green of the first pixel
  const at::Tensor x = preprocess(image, preset("cifar10"), "green");
  EXPECT_FLOAT_EQ(x[0][0][0].item<float>(), -0.485f / 0.229f);
  EXPECT_FLOAT_EQ(x[1][0][0].item<float>(), (1 - 0.456f) / 0.224f);
}

TEST(Preprocess, RefusesAnotherSizeWhereThePresetDoesNotResize) {
  EXPECT_THROW(preprocess(grey_image(33, 32, 0), preset("cifar10"), "x.png"), Error);
  EXPECT_NO_THROW(preprocess(grey_image(1, 1, 0), preset("efficientnet_lite0"), "tiny"));
  EXPECT_NO_THROW(preprocess(grey_image(2, 5, 0), preset("torchvision"), "tiny"));
}

}  // namespace
}  // namespace zsq::eval
