// SPDX-License-Identifier: Apache-2.0
#include "eval/boxed_images.h"

#include <gtest/gtest.h>

#include <fstream>

#include "eval/image.h"
#include "eval/preprocess.h"
#include "tests/support/error_message.h"
#include "tests/support/temp_folder.h"

namespace zsq::eval::boxed_images_test {
namespace {

Image black(std::int64_t height, std::int64_t width) {
  return {height, width, std::vector<std::uint8_t>(static_cast<std::size_t>(3 * height * width))};
}

void brighten(Image& image, const Box& box) {
  for (auto y = static_cast<std::int64_t>(box.top); y < box.top + box.height; ++y)
    for (auto x = static_cast<std::int64_t>(box.left); x < box.left + box.width; ++x)
      for (std::int64_t c = 0; c < 3; ++c)
        image.pixels[static_cast<std::size_t>((y * image.width + x) * 3 + c)] = 255;
}

// Of the pixels brighter than 128.
Box bright(const Image& image) {
  std::int64_t left = image.width, top = image.height, right = 0, bottom = 0;
  for (std::int64_t y = 0; y < image.height; ++y)
    for (std::int64_t x = 0; x < image.width; ++x) {
      if (image.pixels[static_cast<std::size_t>((y * image.width + x) * 3)] <= 128) continue;
      left = std::min(left, x), right = std::max(right, x + 1);
      top = std::min(top, y), bottom = std::max(bottom, y + 1);
    }
  return {static_cast<double>(left), static_cast<double>(top), static_cast<double>(right - left),
          static_cast<double>(bottom - top)};
}

// A bright part of an image is found in the input, and where the input says it is.
TEST(ShownPart, MapsTheInputToTheImageForEveryCropOrder) {
  const Box part{90, 70, 30, 40};
  for (const ImageSize size : {ImageSize{150, 203}, ImageSize{203, 151}}) {
    Image image = black(size.height, size.width);
    brighten(image, part);
    for (const auto& keys : std::vector<PreprocessingOptions>{
             {.crop_order = CropOrder::letterbox},
             {.crop_order = CropOrder::stretch},
             {.crop_order = CropOrder::stretch, .crop_fraction = 0.8},
             {.crop_order = CropOrder::crop_then_resize, .crop_fraction = 0.9},
             {.crop_order = CropOrder::resize_then_crop, .resize = 110}}) {
      SCOPED_TRACE(enum_name(*keys.crop_order));
      PreprocessingOptions all = keys;
      all.size = ImageSize{96, 80}, all.mean = {0}, all.std = {1};
      const Preprocessing p = resolve(all, {});
      const Box shown = shown_part(size, p), found = bright(fit(image, p, "image"));
      const double x = shown.width / 80, y = shown.height / 96;
      EXPECT_NEAR(shown.left + found.left * x, part.left, x);
      EXPECT_NEAR(shown.top + found.top * y, part.top, y);
      EXPECT_NEAR(found.width * x, part.width, 2 * x);
      EXPECT_NEAR(found.height * y, part.height, 2 * y);
    }
  }
}

// 4 x 8 (height x width) into 7 x 8: as it is, below one line of grey and above two.
TEST(Letterbox, IsGreyBesideTheImageWithTheOddPixelLast) {
  PreprocessingOptions keys{.size = ImageSize{7, 8}, .crop_order = CropOrder::letterbox};
  keys.mean = {0}, keys.std = {1};
  const Image ready = fit(black(4, 8), resolve(keys, {}), "image");
  ASSERT_EQ(ready.height, 7);
  for (std::int64_t y = 0; y < 7; ++y)
    EXPECT_EQ(ready.pixels[static_cast<std::size_t>(y * 24)], y >= 1 && y < 5 ? 0 : 114) << y;
}

class BoxedImagesTest : public testing::Test {
 protected:
  BoxedImagesTest() {
    preprocessing_.size = {8, 16};
    preprocessing_.crop_order = CropOrder::stretch;
    for (const auto& [name, height, width] : {std::tuple{"a.png", 16, 16}, {"b.png", 8, 32}}) {
      const auto bytes = encode_png(black(height, width));
      folder_.file(name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }
    file_ = {"boxes.json",
             {{3, "b.png", {8, 32}, {{{1, 2, 3, 4}, 12, 0, false}}}, {5, "a.png", {}, {}}},
             {{1, "cat"}}};
  }
  std::string refusal() {
    return test::error_message(ErrorCode::bad_input, [&] {
      BoxedImages(file_, folder_.path(), preprocessing_).load(0, 1);
    });
  }

  test::TempFolder folder_;
  Preprocessing preprocessing_;
  CocoFile file_;
};

TEST_F(BoxedImagesTest, SayWhatOfWhichImageTheNetworkSees) {
  const BoxedImages images(file_, folder_.path(), preprocessing_);
  ASSERT_EQ(images.size(), 2);
  const Batch batch = images.load(0, 2);
  EXPECT_EQ(batch.images.sizes(), at::IntArrayRef({2, 3, 8, 16}));
  const double expected[] = {0, 0, 0, 32, 8, 32, 8, 1, 0, 0, 16, 16, 16, 16};
  ASSERT_EQ(batch.labels.numel(), std::ssize(expected));
  for (std::size_t i = 0; i < std::size(expected); ++i)
    EXPECT_EQ(batch.labels.const_data_ptr<double>()[i], expected[i]) << i;
}

TEST_F(BoxedImagesTest, RefuseImagesThatAreMissingOrOfAnotherSize) {
  file_.images[0].size = {32, 8};
  EXPECT_NE(refusal().find("has 8 x 32 pixels (height x width), and boxes.json says 32 x 8"),
            std::string::npos);
  file_.images[0].file = "c.png";
  EXPECT_NE(refusal().find("lacks 1 of the 2 images of boxes.json, the first of them 'c.png'"),
            std::string::npos);
  file_.images.clear();
  EXPECT_NE(refusal().find("lists no image"), std::string::npos);
}

TEST_F(BoxedImagesTest, AreWhatOpenDataGivesWithAnnotations) {
  DataOptions options;
  options.eval_data = folder_.path().string();
  options.annotations = folder_.file("boxes.json", R"({"images": [{"id": 1, "file_name": "a.png"}],
    "categories": [{"id": 1, "name": "cat"}],
    "annotations": [{"image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1]}]})");
  options.size = ImageSize{8, 8}, options.mean = {0}, options.std = {1};
  Observer silent;
  const auto source = open_data(options, silent);
  EXPECT_NE(dynamic_cast<const BoxedImages*>(source.get()), nullptr);
  EXPECT_EQ(source->size(), 1);
  options.eval_data = (folder_ / "a.png").string();
  EXPECT_NE(test::error_message(ErrorCode::bad_input, [&] { open_data(options, silent); })
                .find("is no folder"),
            std::string::npos);
}

}  // namespace
}  // namespace zsq::eval::boxed_images_test
