// SPDX-License-Identifier: Apache-2.0
// Builds without OpenCV give its pixels: of what OpenCV writes, and of what it reads.
#include <gtest/gtest.h>

#include <opencv2/core/mat.hpp>
#include <opencv2/imgcodecs.hpp>

#include "eval/image.h"

namespace zsq::eval::decode_plain_test {
namespace {

std::vector<std::byte> encoded(const std::string& format, int type,
                               const std::vector<int>& settings = {}) {
  cv::Mat image(31, 45, type);
  cv::theRNG().state = 7;
  cv::randu(image, 0, CV_MAT_DEPTH(type) == CV_16U ? 65535 : 255);
  std::vector<std::uint8_t> bytes;
  cv::imencode(format, image, bytes, settings);
  const auto view = std::as_bytes(std::span(bytes));
  return {view.begin(), view.end()};
}

void expect_as_opencv(const std::vector<std::byte>& bytes, const std::optional<Image>& image) {
  ASSERT_TRUE(image);
  const Image expected = decode_image(bytes, "x");
  EXPECT_EQ(image->height, expected.height);
  EXPECT_EQ(image->width, expected.width);
  EXPECT_EQ(image->pixels, expected.pixels);
}

TEST(DecodePlain, PngsOfEachKind) {
  for (const int type : {CV_8UC3, CV_8UC1, CV_8UC4, CV_16UC3, CV_16UC1, CV_16UC4}) {
    SCOPED_TRACE(type);
    const auto bytes = encoded(".png", type);
    expect_as_opencv(bytes, decode_png(bytes));
  }
  const auto two_colours = encoded(".png", CV_8UC1, {cv::IMWRITE_PNG_BILEVEL, 1});
  expect_as_opencv(two_colours, decode_png(two_colours));
}

TEST(DecodePlain, Webps) {
  for (const int type : {CV_8UC3, CV_8UC4})
    for (const int quality : {80, 101}) {
      SCOPED_TRACE(quality);
      const auto bytes = encoded(".webp", type, {cv::IMWRITE_WEBP_QUALITY, quality});
      expect_as_opencv(bytes, decode_webp(bytes));
    }
}

TEST(DecodePlain, Jpegs) {
  for (const int type : {CV_8UC3, CV_8UC1}) {
    const auto bytes = encoded(".jpg", type);
    expect_as_opencv(bytes, decode_jpeg(bytes, Decoder::opencv));
  }
}

TEST(DecodePlain, WhatIsDamagedOrAnotherFormatIsNothing) {
  auto png = encoded(".png", CV_8UC3), webp = encoded(".webp", CV_8UC3);
  EXPECT_FALSE(decode_png(webp));
  EXPECT_FALSE(decode_webp(png));
  EXPECT_FALSE(decode_png(std::span(png).first(png.size() / 2)));
  EXPECT_FALSE(decode_webp(std::span(webp).first(webp.size() / 2)));
  EXPECT_FALSE(decode_png({}));
  png[png.size() / 2] ^= std::byte{255};  // the checksum of the pixels
  EXPECT_FALSE(decode_png(png));
}

}  // namespace
}  // namespace zsq::eval::decode_plain_test
