// SPDX-License-Identifier: Apache-2.0
// Configurations of other libraries, as these write them.
#include <gtest/gtest.h>

#include <fstream>

#include "eval/preprocessing.h"
#include "eval/preset.h"
#include "tests/support/error_message.h"
#include "tests/support/temp_folder.h"

namespace zsq::eval {
namespace {

class PresetFile : public testing::Test {
 protected:
  std::string write(const std::string& text) const {
    std::ofstream(folder_ / "config.json") << text;
    return (folder_ / "config.json").string();
  }
  Preprocessing read(const std::string& text, ImageSize own = {224, 224}) const {
    return resolve({.preset = write(text)}, own);
  }
  void expect_refusal(const std::string& text, const std::vector<std::string>& parts) const {
    const std::string message =
        test::error_message(ErrorCode::bad_input, [&] { read_preset_file(write(text)); });
    EXPECT_NE(message.find("config.json: "), std::string::npos) << message;
    for (const std::string& part : parts)
      EXPECT_NE(message.find(part), std::string::npos) << message << " without " << part;
  }

  test::TempFolder folder_;
};

// An image processor of Hugging Face with these keys, and mean and std.
std::string hugging_face(const std::string& keys) {
  return R"({"image_processor_type": "SomeImageProcessor", "do_convert_rgb": null,
             "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225], )" +
         keys + "}";
}

TEST_F(PresetFile, HuggingFaceShortestEdgeAndCrop) {
  const Preprocessing p = read(hugging_face(
      R"("do_resize": true, "size": {"shortest_edge": 256}, "do_center_crop": true,
         "crop_size": {"height": 224, "width": 192}, "resample": 2, "do_rescale": true,
         "rescale_factor": 0.00392156862745098, "do_normalize": true)"));
  EXPECT_EQ(p.crop_order, CropOrder::resize_then_crop);
  EXPECT_EQ(p.resize, 256);
  EXPECT_EQ(p.size, (ImageSize{224, 192}));
  EXPECT_EQ(p.interpolation, Interpolation::bilinear);
  EXPECT_EQ(p.value_range, (std::array{0.0, 1.0}));
  EXPECT_EQ(p.mean[2], 0.406);
  EXPECT_EQ(p.std[0], 0.229);
  EXPECT_EQ(p.channel_order, ChannelOrder::rgb);
}

// ResNet's and RegNet's processor (ConvNext): crop_pct without crop_size; from 384 on it stretches.
TEST_F(PresetFile, HuggingFaceCropFraction) {
  const Preprocessing old = read(hugging_face(R"("crop_pct": 0.875, "size": 224, "resample": 3)"));
  EXPECT_EQ(old.crop_order, CropOrder::resize_then_crop);
  EXPECT_EQ(old.resize, 256);
  EXPECT_EQ(old.size, (ImageSize{224, 224}));
  EXPECT_EQ(old.interpolation, Interpolation::bicubic);
  const Preprocessing large =
      read(hugging_face(R"("crop_pct": 0.875, "size": {"shortest_edge": 384})"));
  EXPECT_EQ(large.crop_order, CropOrder::stretch);
  EXPECT_EQ(large.crop_fraction, 1);
  EXPECT_EQ(large.size, (ImageSize{384, 384}));
  // PoolFormer's has both.
  const Preprocessing both = read(hugging_face(
      R"("crop_pct": 0.9, "size": {"shortest_edge": 224}, "crop_size": 224, "do_center_crop": true)"));
  EXPECT_EQ(both.crop_order, CropOrder::resize_then_crop);
  EXPECT_EQ(both.resize, 248);
}

TEST_F(PresetFile, HuggingFaceStretch) {
  const Preprocessing p =
      read(hugging_face(R"("size": {"height": 346, "width": 260}, "do_center_crop": false,
                           "crop_size": {"height": 289, "width": 289}, "resample": 0,
                           "include_top": true, "rescale_offset": true, "do_rescale": true,
                           "rescale_factor": 0.00784313725490196)"));
  EXPECT_EQ(p.crop_order, CropOrder::stretch);
  EXPECT_EQ(p.size, (ImageSize{346, 260}));
  EXPECT_EQ(p.interpolation, Interpolation::nearest);
  EXPECT_EQ(p.value_range, (std::array{-1.0, 1.0}));
  EXPECT_DOUBLE_EQ(p.std[0], 0.229 * 0.229);  // EfficientNet's processor divides twice
  const Preprocessing cropped = read(hugging_face(
      R"("size": {"height": 256, "width": 256}, "do_center_crop": true, "crop_size": 224)"));
  EXPECT_EQ(cropped.crop_order, CropOrder::stretch);
  EXPECT_EQ(cropped.resize, 256);
  EXPECT_EQ(cropped.size, (ImageSize{224, 224}));
}

TEST_F(PresetFile, HuggingFaceStepsThatAreOff) {
  const Preprocessing p = read(R"({"do_resize": false, "do_rescale": false, "do_normalize": false,
                                   "do_flip_channel_order": true})",
                               {30, 20});
  EXPECT_EQ(p.crop_order, CropOrder::none);
  EXPECT_EQ(p.size, (ImageSize{30, 20}));
  EXPECT_EQ(p.value_limits(), (std::pair{0.0, 255.0}));
  EXPECT_EQ(p.channel_order, ChannelOrder::bgr);
  EXPECT_EQ(read(hugging_face(R"("size": 64, "do_flip_channel_order": true)")).mean[0], 0.406);
}

constexpr const char* kTimm = R"("tag": "ra4", "input_size": [3, 224, 224],
    "test_input_size": [3, 256, 256], "fixed_input_size": false, "interpolation": "bicubic",
    "crop_pct": 0.9, "test_crop_pct": 1.0, "crop_mode": "center", "mean": [0.5, 0.5, 0.5],
    "std": [0.25, 0.5, 0.5], "num_classes": 1000, "pool_size": [7, 7], "label_names": null)";

TEST_F(PresetFile, TimmFlatAndNested) {
  for (const std::string& text :
       {"{" + std::string(kTimm) + "}",
        R"({"architecture": "x", "num_features": 7, "pretrained_cfg": {)" + std::string(kTimm) +
            "}}"}) {
    const Preprocessing p = read(text, {192, 160});
    EXPECT_EQ(p.size, (ImageSize{192, 160}));  // the model's own: the input size is not fixed
    EXPECT_EQ(p.crop_fraction, 0.9);
    EXPECT_EQ(p.resize, 0);
    EXPECT_EQ(p.interpolation, Interpolation::bicubic);
    EXPECT_EQ(p.std, (std::vector<double>{0.25, 0.5, 0.5}));
    EXPECT_EQ(read(text, {256, 256}).crop_fraction, 1);  // its test size
    EXPECT_EQ(read(text, {224, 224}).crop_fraction, 0.9);
  }
  const Preprocessing p = read(R"({"input_size": [3, 48, 40], "fixed_input_size": true,
                                   "crop_mode": "squash", "interpolation": "bilinear"})");
  EXPECT_EQ(p.size, (ImageSize{48, 40}));
  EXPECT_EQ(p.crop_order, CropOrder::stretch);
  EXPECT_EQ(p.crop_fraction, 0.875);
  EXPECT_EQ(p.mean[0], 0.485);  // timm's defaults
}

TEST_F(PresetFile, IsTheBaseOfOtherKeys) {
  const Preprocessing p =
      resolve({.preset = write("{" + std::string(kTimm) + "}"), .resize = 300}, {224, 224});
  EXPECT_EQ(p.resize, 300);
  EXPECT_EQ(p.mean[0], 0.5);
  EXPECT_EQ(p.name, (folder_ / "config.json").string());
}

TEST_F(PresetFile, SaysWhatIsWrong) {
  const auto hf = [](const std::string& keys) { return hugging_face(keys); };
  expect_refusal("{", {"JSON"});
  expect_refusal("[]", {"JSON"});
  expect_refusal("", {"JSON"});
  const std::string deep(100'000, '[');  // printing it would use up the stack
  expect_refusal(R"({"do_resize": )" + deep + std::string(deep.size(), ']') + "}",
                 {"nested deeper"});
  expect_refusal(R"({"hidden_size": 7})", {"do_resize", "input_size"});
  expect_refusal(std::string(2 << 20, ' '), {"megabyte"});
  expect_refusal(hf(R"("size": "224")"), {"'size' is \"224\"", "expected"});
  expect_refusal(hf(R"("size": {"height": 224})"), {"'size'", "height and width"});
  expect_refusal(hf(R"("size": {"shortest_edge": -1}, "crop_size": 7)"),
                 {"'size.shortest_edge'", "-1"});
  expect_refusal(hf(R"("size": {"shortest_edge": 1e9}, "crop_size": 7)"), {"8192"});
  expect_refusal(hf(R"("size": {"shortest_edge": 7.5}, "crop_size": 7)"), {"whole"});
  expect_refusal(hf(R"("size": {"shortest_edge": 256, "longest_edge": 300}, "crop_size": 7)"),
                 {"longest_edge"});
  expect_refusal(hf(R"("size": {"shortest_edge": 256}, "do_center_crop": true)"), {"'crop_size'"});
  expect_refusal(hf(R"("size": {"shortest_edge": 256})"), {"'do_center_crop'"});
  expect_refusal(hf(R"("resample": 3)"), {"'size' is absent"});
  expect_refusal(hf(R"("size": 224, "resample": 9)"), {"'resample' is 9"});
  expect_refusal(hf(R"("size": 224, "do_pad": true)"), {"'do_pad'"});
  expect_refusal(hf(R"("size": 224, "rescale_factor": 0)"), {"'rescale_factor' is 0"});
  expect_refusal(R"({"do_normalize": true, "size": 8})", {"'image_mean' is absent"});
  expect_refusal(R"({"size": 8, "image_mean": [1, 2], "image_std": 1})", {"'image_mean' is [1,2]"});
  expect_refusal(R"({"size": 8, "image_mean": 1, "image_std": [0, 1, 1]})", {"'image_std'"});
  expect_refusal(R"({"input_size": [2, 28, 28]})", {"[3, height, width]"});
  expect_refusal(R"({"input_size": [3, 28.5, 28]})", {"[3, height, width]"});
  expect_refusal(R"({"pretrained_cfg": {"crop_pct": 90}})", {"'pretrained_cfg.crop_pct' is 90"});
  expect_refusal(R"({"interpolation": "random"})", {"'interpolation' is \"random\""});
  expect_refusal(R"({"input_size": [3, 8, 8], "crop_mode": "border"})", {"'crop_mode'"});
  const std::string message = test::error_message(
      ErrorCode::bad_input, [&] { read_preset_file(folder_ / "nowhere.json"); });
  EXPECT_NE(message.find("no such file"), std::string::npos) << message;
}

}  // namespace
}  // namespace zsq::eval
