// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <opencv2/core/mat.hpp>
#include <opencv2/imgcodecs.hpp>

#include "core/error.h"
#include "eval/image.h"
#include "eval/preprocess.h"
#include "tests/eval/pattern_image.h"
#include "tests/support/temp_folder.h"

namespace zsq::eval {
namespace {

constexpr std::array kVariants{Decoder::jpeg_ifast, Decoder::jpeg_float,
                               Decoder::jpeg_nearest_chroma};

// With chroma halved in both directions and sides that are no multiple of a block.
std::vector<std::byte> jpeg() {
  Image image = pattern_image(37, 51);
  const cv::Mat pixels(37, 51, CV_8UC3, image.pixels.data());
  std::vector<std::uint8_t> bytes;
  cv::imencode(".jpg", pixels, bytes, {cv::IMWRITE_JPEG_QUALITY, 80});
  const auto view = std::as_bytes(std::span(bytes));
  return {view.begin(), view.end()};
}

// An APP1 segment with one entry, Orientation (0x0112), after the start of the image.
std::vector<std::byte> turned(std::vector<std::byte> bytes, std::uint8_t orientation) {
  const std::array<std::uint8_t, 36> segment{
      0xFF, 0xE1, 0,    34, 'E', 'x', 'i', 'f', 0, 0, 'I',         'I', 42, 0, 8, 0, 0, 0,
      1,    0,    0x12, 1,  3,   0,   1,   0,   0, 0, orientation, 0,   0,  0, 0, 0, 0, 0};
  const auto view = std::as_bytes(std::span(segment));
  bytes.insert(bytes.begin() + 2, view.begin(), view.end());
  return bytes;
}

int largest_difference(const Image& a, const Image& b) {
  int largest = 0;
  for (std::size_t i = 0; i < a.pixels.size(); ++i)
    largest = std::max(largest, std::abs(a.pixels[i] - b.pixels[i]));
  return largest;
}

// OpenCV decodes with libjpeg's integer transform and interpolated chroma.
TEST(Decoder, LibjpegAsItComesIsOpenCV) {
  const auto plain = decode_jpeg(jpeg(), Decoder::opencv);
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->pixels, decode_image(jpeg(), "x").pixels);
}

TEST(Decoder, VariantsDifferALittle) {
  const Image reference = decode_image(jpeg(), "x");
  for (const Decoder decoder : kVariants) {
    const Image image = decode_image(jpeg(), "x", decoder);
    ASSERT_EQ(image.height, 37);
    ASSERT_EQ(image.width, 51);
    const int difference = largest_difference(image, reference);
    EXPECT_GT(difference, 0) << enum_name(decoder);
    // Chroma that is repeated is off where it is steep.
    EXPECT_LE(difference, decoder == Decoder::jpeg_nearest_chroma ? 255 : 16) << enum_name(decoder);
  }
}

TEST(Decoder, TurnsByExifOnlyWhereAsked) {
  const auto bytes = turned(jpeg(), 6);  // a quarter turn
  EXPECT_EQ(decode_image(bytes, "x").height, 37);
  EXPECT_EQ(decode_image(bytes, "x", Decoder::jpeg_float).height, 37);
  EXPECT_EQ(decode_image(bytes, "x", Decoder::opencv_exif).height, 51);
}

TEST(Decoder, OtherFormatsAreOpenCVs) {
  const Image image = pattern_image(5, 7);
  const auto png = encode_png(image);
  for (const Decoder decoder : kVariants)
    EXPECT_EQ(decode_image(png, "x", decoder).pixels, image.pixels);
}

// With its headers and its end, so that only the decoder can notice.
TEST(Decoder, DamagedDataEndsNoProgram) {
  const auto whole = jpeg();
  for (std::size_t at = 200; at + 2 < whole.size(); at += 7) {
    auto bytes = whole;
    bytes[at] ^= std::byte{0x5A};
    for (const Decoder decoder : kVariants) try {
        decode_image(bytes, "x", decoder);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::bad_input);
      }
  }
}

TEST(Decoder, IsASettingOfThePreprocessing) {
  const test::TempFolder folder;
  const auto path = folder / "image.jpg";
  const auto bytes = jpeg();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  PreprocessingOptions keys{.preset = "cifar10"};
  keys.crop_order = CropOrder::stretch;
  const auto reference = read_image(path, resolve(keys, {32, 32}));
  keys.decoder = Decoder::jpeg_nearest_chroma;
  EXPECT_NE(read_image(path, resolve(keys, {32, 32})).pixels, reference.pixels);
}

}  // namespace
}  // namespace zsq::eval
