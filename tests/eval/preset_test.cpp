// SPDX-License-Identifier: Apache-2.0
#include "eval/preset.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "eval/preprocess.h"
#include "tests/eval/pattern_image.h"
#include "tests/eval/pillow_fit_cases.h"
#include "tests/support/error_message.h"

namespace zsq::eval::preset_test {
namespace {

Image grey_image(std::int64_t height, std::int64_t width, std::uint8_t value) {
  return {height, width,
          std::vector<std::uint8_t>(static_cast<std::size_t>(height * width * 3), value)};
}

Preprocessing known(const std::string& name, ImageSize own = {32, 32}) {
  return resolve({.preset = name}, own);
}

std::string refusal(const PreprocessingOptions& keys) {
  return test::error_message(ErrorCode::usage, [&] { resolve(keys, {32, 32}); });
}

using List = std::vector<double>;

TEST(Preset, NamesTheNearestWhereUnknown) {
  const std::string message = refusal({.preset = "torchvison"});
  EXPECT_NE(message.find("did you mean 'torchvision'"), std::string::npos) << message;
}

TEST(Preset, ValueLimitsAreThoseOfPreprocessedBlackAndWhite) {
  for (const std::string& name : preset_names()) {
    const Preprocessing p = known(name);
    const auto [height, width] = p.size;
    const at::Tensor black = preprocess(grey_image(height, width, 0), p, name);
    const at::Tensor white = preprocess(grey_image(height, width, 255), p, name);
    EXPECT_FLOAT_EQ(black.min().item<float>(), static_cast<float>(p.value_limits().first));
    EXPECT_FLOAT_EQ(white.max().item<float>(), static_cast<float>(p.value_limits().second));
    EXPECT_EQ(white.sizes(), at::IntArrayRef({3, height, width}));
  }
}

// The published input sizes; the crop of tensorflow/tpu is size / (size + 32) of the shorter side.
TEST(Preset, EfficientNetLites) {
  for (const auto& [name, size] : {std::pair{"efficientnet_lite0", 224},
                                   {"efficientnet_lite1", 240},
                                   {"efficientnet_lite2", 260},
                                   {"efficientnet_lite3", 280},
                                   {"efficientnet_lite4", 300}}) {
    const Preprocessing p = known(name, {size, size});
    EXPECT_EQ(p.size, (ImageSize{size, size}));
    EXPECT_EQ(p.crop_order, CropOrder::crop_then_resize);
    EXPECT_EQ(p.resize, size + 32);
    EXPECT_EQ(p.value(127, 0), 0);
    EXPECT_EQ(p.value(255, 2), 1);
  }
}

TEST(Preset, TimmsHaveTheModelsOwnSize) {
  const Preprocessing p = known("timm_inception_bicubic_0.9", {299, 331});
  EXPECT_EQ(p.size, (ImageSize{299, 331}));
  EXPECT_EQ(p.crop_fraction, 0.9);
  EXPECT_EQ(p.value_limits(), (std::pair{-1.0, 1.0}));
}

TEST(Preprocessing, EqualsPillowInEveryPixel) {
  for (const PillowFitCase& expected : kPillowFitCases) {
    PreprocessingOptions keys = expected.keys;
    keys.mean = List{0};
    keys.std = List{1};
    EXPECT_EQ(fit(pattern_image(23, 31), resolve(keys, {}), "x").pixels, expected.pixels)
        << to_json(keys);
  }
}

TEST(Preprocessing, KeysWinOverThePresetAndSizeIsTheModelsOwn) {
  const Preprocessing p = resolve({.preset = "torchvision",
                                   .size = ImageSize{240, 320},
                                   .crop_fraction = 0.5,
                                   .mean = List{0.5},
                                   .channel_order = ChannelOrder::bgr},
                                  {32, 32});
  EXPECT_EQ(p.size, (ImageSize{240, 320}));
  EXPECT_EQ(p.resize, 0);  // the preset's other form of the crop
  EXPECT_EQ(p.crop_fraction, 0.5);
  EXPECT_EQ(p.mean, List(3, 0.5));
  EXPECT_EQ(p.std, (List{0.229, 0.224, 0.225}));
  const Preprocessing bare = resolve({.mean = List{0}, .std = List{1}}, {30, 40});
  EXPECT_EQ(bare.size, (ImageSize{30, 40}));
  EXPECT_EQ(bare.crop_order, CropOrder::resize_then_crop);
  EXPECT_EQ(bare.crop_fraction, 1);
  EXPECT_EQ(bare.interpolation, Interpolation::bilinear);
}

TEST(Preprocessing, ValuesAndChannelOrder) {
  // Pixel 51 is a fifth of 255.
  PreprocessingOptions keys{.mean = List{0.1, 0.2, 0.3}, .std = List{2, 4, 5}};
  Image image = grey_image(1, 1, 51);
  image.pixels[2] = 255;  // blue
  const auto values = [&] {
    const at::Tensor x = preprocess(image, resolve(keys, {1, 1}), "x");
    return List{x[0].item<float>(), x[1].item<float>(), x[2].item<float>()};
  };
  const auto expect = [&](const List& expected) {
    const List found = values();
    for (std::size_t c = 0; c < 3; ++c) EXPECT_NEAR(found[c], expected[c], 1e-5) << c;
  };
  expect({0.05, 0, 0.14});
  keys.channel_order = ChannelOrder::bgr;
  expect({0.45, 0, -0.02});
  keys.value_range = List{-1, 1};  // pixel 51 is -0.6
  expect({0.45, -0.2, -0.18});
  keys.value_range = List{0, 255};
  expect({(255 - 0.1) / 2, 50.8 / 4, 50.7 / 5});
  const Preprocessing p = resolve(keys, {1, 1});
  EXPECT_EQ(to_pixels(preprocess(image, p, "x"), p).pixels, image.pixels);
}

// Pillow 11: Image.new("RGB", (1, 1), colour).convert("L") gives these.
TEST(Preprocessing, OneChannelIsTheLumaOfPillow) {
  const PreprocessingOptions keys{.mean = List{0.5}, .std = List{0.25}};
  const Preprocessing p = resolve(keys, {1, 1}, 1);
  EXPECT_EQ(p.channels(), 1);
  struct Case {
    std::array<std::uint8_t, 3> rgb;
    int luma;
  };
  for (const auto& [rgb, luma] : {Case{{255, 0, 0}, 76},
                                  {{0, 255, 0}, 150},
                                  {{0, 0, 255}, 29},
                                  {{10, 200, 77}, 129},
                                  {{123, 45, 67}, 71},
                                  {{201, 201, 201}, 201}}) {
    const Image image{1, 1, {rgb.begin(), rgb.end()}};
    const at::Tensor x = preprocess(image, p, "x");
    ASSERT_EQ(x.sizes(), at::IntArrayRef({1, 1, 1}));
    EXPECT_NEAR(x.item<double>(), (luma / 255.0 - 0.5) / 0.25, 1e-6) << luma;
    const auto grey = static_cast<std::uint8_t>(luma);
    EXPECT_EQ(to_pixels(x, p).pixels, (std::vector<std::uint8_t>{grey, grey, grey}));
  }
}

TEST(Preprocessing, MeansAreOfTheNetworksChannels) {
  const auto grey = [](const PreprocessingOptions& keys, std::int64_t channels = 1) {
    return resolve(keys, {28, 28}, channels);
  };
  const auto message = [&](const PreprocessingOptions& keys, std::int64_t channels) {
    return test::error_message(ErrorCode::usage, [&] { grey(keys, channels); });
  };
  const std::string one = message({.preset = "torchvision"}, 1);
  for (const char* part :
       {"data.mean of the preset 'torchvision'", "3 numbers", "1 channel:", "--set data.mean=0.5"})
    EXPECT_NE(one.find(part), std::string::npos) << one;
  EXPECT_NE(message({.preset = "cifar10"}, 4).find("4 channels"), std::string::npos);
  // Equal ones are one; own ones take the place of the preset's.
  EXPECT_EQ(grey({.mean = List{0.3, 0.3, 0.3}, .std = List{1}}).mean, List{0.3});
  EXPECT_EQ(grey({.preset = "timm_inception_bicubic_0.9"}).mean, List{0.5});
  EXPECT_EQ(grey({.preset = "cifar10", .mean = List{0.13}, .std = List{0.3}}).mean, List{0.13});
  EXPECT_EQ(grey({.mean = List{0.5}, .std = List{1}}, 4).mean, List(4, 0.5));
  // What is complete says by itself of how many channels it is.
  const auto complete = to_options(grey({.mean = List{0.5}, .std = List{1}}));
  EXPECT_EQ(resolve(complete, {}).channels(), 1);
  EXPECT_EQ(resolve({.mean = List{0.5}, .std = List{1}}, {28, 28}).channels(), 3);
}

TEST(Preprocessing, ImageFilesHaveOneOrThreeChannels) {
  const Preprocessing four = resolve({.mean = List{0.5}, .std = List{1}}, {1, 1}, 4);
  const std::string message =
      test::error_message(ErrorCode::usage, [&] { preprocess(grey_image(1, 1, 9), four, "x"); });
  EXPECT_NE(message.find("the network takes 4"), std::string::npos) << message;
}

TEST(Preprocessing, SaysWhatContradictsOrIsMissing) {
  const auto expect = [](const PreprocessingOptions& keys, const std::string& part) {
    const std::string message = refusal(keys);
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  expect({}, "--preset");
  expect({}, "efficientnet_lite1");
  expect({.size = ImageSize{2, 2}}, "data.mean");
  expect({.preset = "torchvision", .mean = List{1, 2}}, "2 were given");
  expect({.preset = "torchvision", .value_range = List{1}}, "data.value_range");
  expect({.preset = "torchvision", .value_range = List{1, 1}}, "data.value_range");
  expect({.preset = "torchvision", .resize = 300, .crop_fraction = 0.5}, "data.crop_fraction");
  expect({.preset = "torchvision", .size = ImageSize{299, 299}}, "data.resize (256)");
}

TEST(Preprocessing, ComesBackFromItsRecord) {
  for (const std::string& name : preset_names()) {
    const PreprocessingOptions keys = to_options(known(name));
    const std::string record = to_json(keys);
    PreprocessingOptions back = from_json(record, "x");
    EXPECT_EQ(to_json(back), record);
    // All is known: neither a preset's name nor the model's size is asked for.
    back.preset = "gone.json";
    EXPECT_EQ(to_json(to_options(resolve(back, {}))), record);
  }
}

TEST(Preprocessing, RefusesADamagedRecord) {
  const auto expect = [](const std::string& text, const std::string& part) {
    const std::string message =
        test::error_message(ErrorCode::bad_input, [&] { from_json(text, "m.onnx"); });
    EXPECT_NE(message.find(part), std::string::npos) << message;
    EXPECT_NE(message.find("m.onnx"), std::string::npos) << message;
  };
  expect("[1", "JSON");
  expect("7", "JSON");
  expect(R"({"size": 7})", "[height, width]");
  expect(R"({"size": [7, -1]})", "'size' is [7,-1]");
  expect(R"({"resize": 7.5})", "whole number");
  expect(R"({"antialias": 1})", "true or false");
  expect(R"({"mean": [1, "x"]})", "'mean'");
  expect(R"({"interpolation": "cubic"})", "bicubic");
  expect(R"({"colour": "cubic"})", "'colour'");
}

TEST(Preprocess, EfficientNetLiteValuesAreExact) {
  const at::Tensor x = preprocess(grey_image(300, 260, 200), known("efficientnet_lite0"), "grey");
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
    const at::Tensor row = preprocess(image, known(name), name)[0][112];
    EXPECT_GT(row[111].item<float>(), 0.5f) << name;
    EXPECT_EQ(row[111].item<float>(), row[112].item<float>()) << name;
    EXPECT_LT(row[100].item<float>(), 0.0f) << name;
    EXPECT_LT(row[123].item<float>(), 0.0f) << name;
  }
}

TEST(Preprocess, KeepsTheChannelsInOrder) {
  Image image = grey_image(32, 32, 0);
  image.pixels[1] = 255;  // green of the first pixel
  const at::Tensor x = preprocess(image, known("cifar10"), "green");
  EXPECT_FLOAT_EQ(x[0][0][0].item<float>(), -0.485f / 0.229f);
  EXPECT_FLOAT_EQ(x[1][0][0].item<float>(), (1 - 0.456f) / 0.224f);
}

TEST(Preprocess, RefusesAnotherSizeWhereThePresetDoesNotResize) {
  EXPECT_THROW(preprocess(grey_image(33, 32, 0), known("cifar10"), "x.png"), Error);
  EXPECT_NO_THROW(preprocess(grey_image(1, 1, 0), known("efficientnet_lite0"), "tiny"));
  EXPECT_NO_THROW(preprocess(grey_image(2, 5, 0), known("torchvision"), "tiny"));
}

}  // namespace
}  // namespace zsq::eval::preset_test
