// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "eval/evaluate.h"
#include "eval/image.h"
#include "tests/support/error_message.h"
#include "tests/support/temp_folder.h"

namespace zsq::eval::masks_test {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::uint8_t>;
using Labels = std::vector<std::int64_t>;

// Written by Pillow: 0 1 2 3 / 3 2 1 0 with a palette of two bits, 0 1 2 3 / 3 2 1 255 in grey.
const Bytes kPalette{137, 80,  78,  71,  13,  10,  26,  10, 0,   0,   0,  13, 73,  72, 68,  82,
                     0,   0,   0,   4,   0,   0,   0,   2,  2,   3,   0,  0,  0,   2,  198, 149,
                     240, 0,   0,   0,   12,  80,  76,  84, 69,  0,   0,  0,  128, 0,  0,   0,
                     128, 0,   128, 128, 0,   56,  236, 4,  128, 0,   0,  0,  12,  73, 68,  65,
                     84,  120, 156, 99,  144, 102, 120, 2,  0,   1,   57, 1,  0,   69, 100, 145,
                     155, 0,   0,   0,   0,   73,  69,  78, 68,  174, 66, 96, 130};
const Bytes kGrey{137, 80,  78,  71,  13, 10,  26, 10,  0,  0,  0,  13,  73,  72, 68,
                  82,  0,   0,   0,   4,  0,   0,  0,   2,  8,  0,  0,   0,   0,  90,
                  195, 34,  191, 0,   0,  0,   18, 73,  68, 65, 84, 120, 156, 99, 100,
                  96,  100, 100, 100, 96, 102, 98, 252, 15, 0,  1,  60,  1,   10, 40,
                  139, 86,  74,  0,   0,  0,   0,  73,  69, 78, 68, 174, 66,  96, 130};

class Masks : public testing::Test {
 protected:
  Masks() {
    fs::create_directories(folder_ / "JPEGImages");
    fs::create_directories(folder_ / "SegmentationClass");
    preprocessing_.size = {2, 4};
    preprocessing_.crop_order = CropOrder::none;
  }

  template <class Byte>
  void write(const fs::path& path, const std::vector<Byte>& bytes) {
    std::ofstream(folder_ / path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  // An image of a mask, four wide and two high.
  void write_image(const std::string& name) {
    write("JPEGImages/" + name, encode_png({2, 4, Bytes(24, 100)}));
  }

  Batch all() const {
    const auto source = open_data(folder_.path().string(), preprocessing_);
    return source->load(0, source->size());
  }
  static Labels flat(const at::Tensor& labels) {
    const auto* data = labels.const_data_ptr<std::int64_t>();
    return {data, data + labels.numel()};
  }
  std::string refusal() const {
    return test::error_message(ErrorCode::bad_input, [&] { all(); });
  }

  test::TempFolder folder_;
  Preprocessing preprocessing_;
};

TEST_F(Masks, AreClassIndicesOfThePixelsOfTheirImages) {
  write_image("b.png");
  write_image("a.png");
  write_image("without_a_mask.png");
  write("SegmentationClass/a.png", kPalette);
  write("SegmentationClass/b.png", kGrey);
  const Batch batch = all();
  EXPECT_EQ(batch.images.sizes(), at::IntArrayRef({2, 3, 2, 4}));
  EXPECT_EQ(batch.labels.sizes(), at::IntArrayRef({2, 2, 4}));
  EXPECT_EQ(flat(batch.labels), (Labels{0, 1, 2, 3, 3, 2, 1, 0, 0, 1, 2, 3, 3, 2, 1, kVoidLabel}));
}

TEST_F(Masks, AreResizedByNearestWithTheirImages) {
  write_image("a.png");
  write("SegmentationClass/a.png", kPalette);
  preprocessing_.crop_order = CropOrder::stretch;
  preprocessing_.size = {4, 8};
  const Labels upper{0, 0, 1, 1, 2, 2, 3, 3}, lower{3, 3, 2, 2, 1, 1, 0, 0};
  Labels expected;
  for (const Labels* line : {&upper, &upper, &lower, &lower})
    expected.insert(expected.end(), line->begin(), line->end());
  EXPECT_EQ(flat(all().labels), expected);
}

TEST_F(Masks, WhatLiesOutsideTheImageIsVoid) {
  write_image("a.png");
  write("SegmentationClass/a.png", kPalette);
  preprocessing_.crop_order = CropOrder::resize_then_crop;
  preprocessing_.resize = 2;  // as it is; the crop is two rows higher
  preprocessing_.size = {4, 4};
  const auto v = kVoidLabel;
  EXPECT_EQ(flat(all().labels), (Labels{v, v, v, v, 0, 1, 2, 3, 3, 2, 1, 0, v, v, v, v}));
}

TEST_F(Masks, RefusesWhatIsNone) {
  EXPECT_NE(refusal().find("holds no mask"), std::string::npos);
  write("SegmentationClass/a.png", encode_png({2, 4, Bytes(24, 1)}));
  EXPECT_NE(refusal().find("no image of that name"), std::string::npos);
  write_image("a.png");
  EXPECT_NE(refusal().find("expected a PNG with a palette or grey"), std::string::npos);
  write("SegmentationClass/a.png", Bytes(kGrey.begin(), kGrey.begin() + 50));
  EXPECT_NE(refusal().find("SegmentationClass/a.png"), std::string::npos);
}

}  // namespace
}  // namespace zsq::eval::masks_test
