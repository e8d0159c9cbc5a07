// SPDX-License-Identifier: Apache-2.0
// Preprocessing goes into what is exported and comes back from there.
#include "pipeline/session/preprocessing.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "eval/image.h"
#include "formats/onnx.h"
#include "pipeline/evaluate.h"
#include "pipeline/quantize.h"
#include "pipeline/run.h"
#include "tests/support/error_message.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_network.h"

namespace zsq {
namespace {

namespace fs = std::filesystem;

struct Listener : Observer {
  void on_message(LogLevel, const std::string& message) override { messages += message + "\n"; }
  std::string messages;
};

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

class Preprocessing : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<test::TempFolder>();
    test::save_onnx(test::train_tiny_network(0).model, model());
  }
  static void TearDownTestSuite() { folder_.reset(); }
  static fs::path model() { return *folder_ / "tiny.onnx"; }

  void SetUp() override {
    if (eval::decoder_name() == "none") GTEST_SKIP() << "needs a build with ZSQ_OPENCV";
  }

  // The same weights for images of another size: pooling takes the mean of whatever there is.
  static fs::path model_of(std::int64_t height, std::int64_t width) {
    auto file = formats::onnx::read(model());
    file.graph.inputs.front().shape[2].value = height;
    file.graph.inputs.front().shape[3].value = width;
    const fs::path path =
        *folder_ / ("of_" + std::to_string(height) + "x" + std::to_string(width) + ".onnx");
    formats::onnx::write(path, file);
    return path;
  }

  // Eight classes with three images each, whose pixels differ from one another and by class.
  static std::string images(int height, int width) {
    const fs::path folder =
        *folder_ / ("images_" + std::to_string(height) + "x" + std::to_string(width));
    for (int i = 0; i < 24; ++i) {
      const fs::path path = folder / std::to_string(i % 8) / (std::to_string(i) + ".ppm");
      fs::create_directories(path.parent_path());
      std::ofstream file(path, std::ios::binary);
      file << "P6 " << width << " " << height << " 255\n";
      for (int k = 0; k < 3 * height * width; ++k)
        file << static_cast<char>((i * 31 + k * (i % 8 + 1) / 5 + k / width * i) % 256);
    }
    return folder.string();
  }

  static QuantizeReport quantized(const fs::path& from, const fs::path& output,
                                  std::vector<std::string> keys, const std::string& data = "") {
    keys.insert(keys.end(), {"process.threads=1", "data.eval_data=" + data});
    QuantizeOptions options;
    options.recipe = load_recipe("instant", keys);
    return quantize(from, options, output);
  }

  static EvalReport evaluated(const fs::path& what, const std::string& data,
                              const PreprocessingOptions& keys = {}, Observer* observer = nullptr) {
    EvaluateOptions options;
    static_cast<PreprocessingOptions&>(options.data) = keys;
    options.data.eval_data = data;
    options.process.threads = 1;
    return evaluate(what, options, observer);
  }

  static std::vector<ImageClasses> classes_of(const fs::path& what, const std::string& image) {
    RunOptions options;
    options.process.threads = 1;
    return classify(what, {image}, options);
  }

  static std::unique_ptr<test::TempFolder> folder_;
};

std::unique_ptr<test::TempFolder> Preprocessing::folder_;

TEST_F(Preprocessing, AnOutputFolderIsMeasuredWithoutAPreset) {
  const std::string data = images(20, 28);
  const fs::path out = *folder_ / "out";
  const QuantizeReport report = quantized(model(), out,
                                          {"data.preset=timm_imagenet_bicubic_0.875",
                                           "data.interpolation=bilinear", "data.channel_order=bgr"},
                                          data);
  const auto record = nlohmann::json::parse(report.preprocessing);
  EXPECT_EQ(record["size"], nlohmann::json({16, 16}));
  EXPECT_EQ(record["interpolation"], "bilinear");
  EXPECT_EQ(record["channel_order"], "bgr");
  EXPECT_EQ(record["crop_fraction"], 0.875);
  EXPECT_EQ(nlohmann::json::parse(to_json(report))["preprocessing"], record);

  Listener listener;
  const EvalReport same = evaluated(out, data, {}, &listener);
  EXPECT_EQ(same.top1, report.student->top1);
  EXPECT_EQ(same.preset, "timm_imagenet_bicubic_0.875");
  EXPECT_EQ(same.preprocessing, report.preprocessing);
  EXPECT_HAS(listener.messages, "model.onnx records it (timm_imagenet_bicubic_0.875)");
  EXPECT_EQ(evaluated(out / "model.onnx", data).preprocessing, report.preprocessing);

  // The resolved recipe says the same, key by key.
  const Recipe resolved = load_recipe((out / "resolved.yaml").string());
  EXPECT_EQ(eval::to_json(resolved.data), report.preprocessing);
  EXPECT_EQ(resolved.data.preset, "timm_imagenet_bicubic_0.875");

  // One key changes what is recorded; a preset replaces it.
  Listener of_key, of_preset;
  const EvalReport rgb = evaluated(out, data, {.channel_order = ChannelOrder::rgb}, &of_key);
  const auto changed = nlohmann::json::parse(rgb.preprocessing);
  EXPECT_EQ(changed["channel_order"], "rgb");
  EXPECT_EQ(changed["interpolation"], "bilinear");
  EXPECT_HAS(of_key.messages, "as asked for");
  const EvalReport other = evaluated(out, data, {.preset = "timm_clip_bicubic_1.0"}, &of_preset);
  EXPECT_EQ(nlohmann::json::parse(other.preprocessing)["crop_fraction"], 1);
  EXPECT_HAS(of_preset.messages, "as asked for");

  EXPECT_EQ(classes_of(out, data + "/0/0.ppm").size(), 1u);
}

TEST_F(Preprocessing, ImagesWithoutAPresetSayWhatToGive) {
  const std::string data = images(20, 28);
  const fs::path out = *folder_ / "bare";
  EXPECT_EQ(quantized(model(), out, {}).preprocessing, "");
  for (const fs::path& what : {model(), out}) {
    const std::string message =
        test::error_message(ErrorCode::usage, [&] { evaluated(what, data); });
    EXPECT_HAS(message, "--preset");
    EXPECT_HAS(message, "preprocessor_config.json");
    EXPECT_HAS(message, "data.mean");
  }
  const std::string message =
      test::error_message(ErrorCode::usage, [&] { classes_of(out, data + "/0/0.ppm"); });
  EXPECT_HAS(message, "--preset");
  test::save_npz(test::draw_shapes(16, 1), *folder_ / "shapes.npz");
  EXPECT_EQ(evaluated(out, *folder_ / "shapes.npz").images, 16);
}

TEST_F(Preprocessing, APresetOfAnotherSizeKeepsItsShareOfTheImage) {
  Listener listener;
  const auto report =
      evaluated(model(), images(20, 28), {.preset = "efficientnet_lite1"}, &listener);
  const auto record = nlohmann::json::parse(report.preprocessing);
  EXPECT_EQ(record["size"], nlohmann::json({16, 16}));
  EXPECT_EQ(record["crop_fraction"], 240.0 / 272);
  EXPECT_HAS(listener.messages, "240x240, the model takes 16x16");

  const std::string message = test::error_message(ErrorCode::usage, [&] {
    evaluated(model(), images(20, 28),
              {.preset = "efficientnet_lite1", .size = ImageSize{240, 240}});
  });
  EXPECT_HAS(message, "240");
  EXPECT_HAS(message, "data.size");
}

TEST_F(Preprocessing, APresetThatTheNetworkContradictsLeavesNoVerdict) {
  const auto report = quantized(model(), *folder_ / "wrong",
                                {"data.mean=0", "data.std=1", "data.value_range=[0, 255]"});
  EXPECT_FALSE(report.pixel_range_known);
  EXPECT_HAS(report.pixels, "BatchNorm layers saw others");
  EXPECT_HAS(report.verdict, "nothing can be said");
}

TEST_F(Preprocessing, EfficientNetLite1sSizeFromEndToEnd) {
  const fs::path lite = model_of(240, 240), out = *folder_ / "lite1";
  const std::string data = images(250, 270);
  const QuantizeReport report = quantized(lite, out, {"data.preset=efficientnet_lite1"}, data);
  ASSERT_TRUE(report.teacher && report.student);
  EXPECT_EQ(report.student->images, 24);
  EXPECT_EQ(evaluated(out, data).top1, report.student->top1);
  EXPECT_EQ(evaluated(lite, data, {.preset = "efficientnet_lite1"}).top1, report.teacher->top1);
}

TEST_F(Preprocessing, SidesMayDifferAndBeOdd) {
  const fs::path wide = model_of(17, 31), out = *folder_ / "wide";
  const std::string data = images(45, 40),
                    config = folder_->file(
                        "config.json",
                        R"({"pretrained_cfg": {"input_size": [3, 17, 31], "crop_pct": 0.9,
                         "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]}})");
  const QuantizeReport report = quantized(wide, out, {"data.preset=" + config}, data);
  EXPECT_EQ(nlohmann::json::parse(report.preprocessing)["size"], nlohmann::json({17, 31}));
  fs::remove(config);  // what is recorded does not need it
  EXPECT_EQ(evaluated(out, data).top1, report.student->top1);
  QuantizeOptions again;
  again.recipe = load_recipe((out / "resolved.yaml").string());
  EXPECT_EQ(quantize(wide, again, *folder_ / "again").student->top1, report.student->top1);
}

TEST_F(Preprocessing, ADamagedRecordIsNamed) {
  const fs::path out = *folder_ / "damaged";
  quantized(model(), out, {"data.preset=cifar10"});
  auto file = formats::onnx::read(out / "model.onnx");
  file.metadata[pipeline::kPreprocessingRecord] = R"({"size": "large"})";
  formats::onnx::write(out / "model.onnx", file);
  const std::string message =
      test::error_message(ErrorCode::bad_input, [&] { evaluated(out, images(16, 16)); });
  EXPECT_HAS(message, "zsq.preprocessing");
  EXPECT_HAS(message, "'size' is \"large\"");
  EXPECT_EQ(evaluated(out, images(16, 16), {.preset = "cifar10"}).images, 24);
}

}  // namespace
}  // namespace zsq
