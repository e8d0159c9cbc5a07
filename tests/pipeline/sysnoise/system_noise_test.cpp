// SPDX-License-Identifier: Apache-2.0
#include "pipeline/system_noise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "eval/preprocess.h"
#include "pipeline/quantize.h"
#include "tests/support/error_message.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_network.h"

namespace zsq::system_noise_test {
namespace {

constexpr std::int64_t kImages = 80;
const std::vector<std::string> kKeys{"data.mean=0.5",     "data.std=0.25",
                                     "data.size=16",      "data.crop_order=stretch",
                                     "process.threads=1", "data.eval_images=80"};

// The network, its images as npz, and the same ones enlarged as files in class folders.
struct Workplace {
  Workplace() : network(test::train_tiny_network(0)) {
    test::save_onnx(network.model, folder / "shapes.onnx");
    test::save_npz(network.test, folder / "shapes.npz");
    eval::Preprocessing pixels;
    pixels.mean = {0.5, 0.5, 0.5};
    pixels.std = {0.25, 0.25, 0.25};
    for (std::int64_t i = 0; i < kImages; ++i) {
      const auto image = eval::to_pixels(network.test.images[i], pixels);
      const auto png = eval::encode_png(eval::resize(image, 40, 40, Interpolation::nearest));
      const auto label = network.test.labels[i].item<std::int64_t>();
      const auto place = folder / "files" / std::to_string(label);
      std::filesystem::create_directories(place);
      std::ofstream(place / (std::to_string(i) + ".png"), std::ios::binary)
          .write(reinterpret_cast<const char*>(png.data()),
                 static_cast<std::streamsize>(png.size()));
    }
  }
  test::TempFolder folder;
  test::TinyNetwork network;
};
Workplace& workplace() {
  static Workplace place;
  return place;
}

SystemNoiseOptions noise_options(const std::string& data, const std::string& sources) {
  Recipe recipe = load_recipe("auto", kKeys);
  recipe.data.eval_data = workplace().folder / data;
  return {{recipe.model, recipe.data, recipe.process}, parse_noise_sources(sources), {}};
}

const NoiseOption& option(const SystemNoiseReport& report, const std::string& name) {
  const auto found = std::ranges::find(report.options, name, &NoiseOption::option);
  if (found == report.options.end()) throw std::runtime_error("no option " + name);
  return *found;
}

TEST(SystemNoise, ImagesReadInOtherWays) {
  const auto model = workplace().folder / "shapes.onnx";
  const auto report = measure_system_noise(model, noise_options("files", "resize,colour,decode"));
  EXPECT_EQ(report.images, kImages);
  // Files that are no JPEG: every decoder gives the same pixels.
  EXPECT_EQ(option(report, "jpeg_ifast").effect.flips, 0);
  EXPECT_EQ(option(report, "jpeg_ifast").effect.divergence, 0);
  EXPECT_EQ(option(report, "jpeg_ifast").effect.p_value, 1);
  // A square image: the geometry makes no difference either, the filter does.
  EXPECT_EQ(option(report, "resize_then_crop").effect.divergence, 0);
  EXPECT_GT(option(report, "pillow nearest").effect.divergence, 0);
  EXPECT_GT(option(report, "nv12_after_resize").effect.divergence, 0);
  ASSERT_EQ(report.summaries.size(), 3u);
  EXPECT_EQ(report.summaries[0].source, "decode");
  EXPECT_EQ(report.summaries[0].options, 4);
  EXPECT_EQ(report.summaries[1].options, 5 + 5 + 2);  // Pillow's, OpenCV's, geometry
  EXPECT_EQ(report.summaries[2].options, 2);
  ASSERT_TRUE(report.combined);
  for (const auto& each : report.options) {
    EXPECT_NEAR(each.effect.drop, report.top1 - each.effect.top1, 1e-9);
    EXPECT_NEAR(each.effect.drop * kImages / 100,
                static_cast<double>(each.effect.worse - each.effect.better), 1e-6);
    EXPECT_GE(each.effect.flips * kImages / 100 + 1e-6,
              static_cast<double>(each.effect.worse + each.effect.better));
  }
}

// What the option does is what evaluation with the same setting sees.
TEST(SystemNoise, AnOptionIsTheSettingOfItsName) {
  const auto model = workplace().folder / "shapes.onnx";
  const auto options = noise_options("files", "resize");
  const auto report = measure_system_noise(model, options);
  EXPECT_FALSE(report.combined);
  auto by_hand = options.evaluation;
  EXPECT_NEAR(report.top1, evaluate(model, by_hand).top1, 1e-9);
  by_hand.data.resizer = Resizer::opencv;
  by_hand.data.interpolation = Interpolation::nearest;
  EXPECT_NEAR(option(report, "opencv nearest").effect.top1, evaluate(model, by_hand).top1, 1e-9);
}

TEST(SystemNoise, PrecisionOfAFloatModelOnPreprocessedImages) {
  const auto model = workplace().folder / "shapes.onnx";
  const auto report = measure_system_noise(model, noise_options("shapes.npz", "all"));
  ASSERT_EQ(report.options.size(), 3u);
  const double bf16 = option(report, "bf16").effect.divergence;
  EXPECT_GT(bf16, 10 * option(report, "fp16").effect.divergence);
  EXPECT_GT(option(report, "fp16").effect.divergence, 0);
  EXPECT_LT(bf16, 0.01);
  EXPECT_LT(option(report, "int8").effect.divergence, 0.1);
  // Three kinds of reading, pooling and padding: the network has no such pooling.
  EXPECT_EQ(report.skipped.size(), 5u);
}

TEST(SystemNoise, WhatQuantizationAdds) {
  const auto model = workplace().folder / "shapes.onnx";
  QuantizeOptions job;
  job.recipe = load_recipe("instant", {"process.agreement_images=0", "data.mean=0.5",
                                       "data.std=0.25", "process.threads=1"});
  job.scheme = Scheme::parse("W4A4");
  const auto output = workplace().folder / "w4a4";
  quantize(model, job, output);
  auto options = noise_options("files", "resize,precision");
  options.against = model;
  const auto report = measure_system_noise(output, options);
  const auto alone = measure_system_noise(model, noise_options("files", "resize"));
  ASSERT_TRUE(report.against_top1);
  EXPECT_NEAR(*report.against_top1, alone.top1, 1e-9);
  for (const auto& each : alone.options) {
    const auto& beside = option(report, each.option).against;
    ASSERT_TRUE(beside);
    EXPECT_NEAR(beside->divergence, each.effect.divergence, 1e-9);
  }
  ASSERT_EQ(report.skipped.size(), 3u);
  EXPECT_NE(report.skipped[0].find("quantized already"), std::string::npos);
  const auto json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json["options"].size(), report.options.size());
  EXPECT_TRUE(json["options"][0]["against"].is_object());
  EXPECT_TRUE(json["combined"].is_null());
}

TEST(SystemNoise, SourcesByName) {
  EXPECT_TRUE(parse_noise_sources("all").empty());
  EXPECT_EQ(parse_noise_sources("pool,decode,pool"),
            (std::vector{NoiseSource::decode, NoiseSource::pool}));
  const auto message = test::error_message(ErrorCode::usage, [] { parse_noise_sources("resise"); });
  EXPECT_NE(message.find("did you mean 'resize'"), std::string::npos) << message;
  EXPECT_THROW(parse_noise_sources(""), Error);
}

}  // namespace
}  // namespace zsq::system_noise_test
