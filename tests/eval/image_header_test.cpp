// SPDX-License-Identifier: Apache-2.0
#include "eval/image_header.h"

#include <gtest/gtest.h>

#include <string>

#include "eval/image.h"
#include "tests/support/error_message.h"

namespace zsq::eval::image_header_test {
namespace {

using namespace std::string_literals;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// Height and width as "H x W"; "none" if there is no header.
std::string size_in(const std::string& text) {
  const auto header = read_image_header(bytes_of(text));
  if (!header) return "none";
  return std::to_string(header->height) + " x " + std::to_string(header->width);
}

std::string big(std::uint32_t value) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(value >> shift);
  return text;
}
std::string png(std::uint32_t height, std::uint32_t width) {
  return "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR"s + big(width) + big(height) + "\x08\x02\0\0\0"s;
}
std::string jpeg(const std::string& segments) { return "\xff\xd8" + segments + "\xff\xd9"; }

// Sizes 3 x 5, by hand from the formats' specifications.
TEST(ImageHeader, EveryFormat) {
  EXPECT_EQ(size_in(png(3, 5)), "3 x 5");
  EXPECT_EQ(size_in(jpeg("\xff\xc0\0\x0b\x08\0\x03\0\x05\x01\x01\x11\0"s)), "3 x 5");
  EXPECT_EQ(size_in("BM"s + std::string(12, '\0') + "\x28\0\0\0\x05\0\0\0\x03\0\0\0"s), "3 x 5");
  EXPECT_EQ(size_in("BM"s + std::string(12, '\0') + "\x28\0\0\0\x05\0\0\0\xfd\xff\xff\xff"s),
            "3 x 5");  // from the top
  EXPECT_EQ(size_in("BM"s + std::string(12, '\0') + "\x0c\0\0\0\x05\0\x03\0"s), "3 x 5");
  EXPECT_EQ(size_in("RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x05\0\x03\0"s), "3 x 5");
  EXPECT_EQ(size_in("RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\x04\x80\0\0"s), "3 x 5");
  EXPECT_EQ(size_in("RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\x04\0\0\x02\0\0"s), "3 x 5");
  EXPECT_EQ(size_in("II*\0\x08\0\0\0\x02\0\0\x01\x03\0\x01\0\0\0\x05\0\0\0"
                    "\x01\x01\x04\0\x01\0\0\0\x03\0\0\0"s),
            "3 x 5");
  EXPECT_EQ(size_in("MM\0*\0\0\0\x08\0\x02\x01\0\0\x03\0\0\0\x01\0\x05\0\0"
                    "\x01\x01\0\x04\0\0\0\x01\0\0\0\x03"s),
            "3 x 5");
  EXPECT_EQ(size_in("P6 # 7 7\n5\n3 255\n"), "3 x 5");
}

TEST(ImageHeader, OtherFilesHaveNone) {
  for (const auto& text : {""s, "P"s, "P7\nWIDTH 5"s, "GIF89a"s, "\x89PNG\r\n\x1a\n"s, "II*"s,
                           "\0\0\0\x0cjP  \r\n"s, "v/1\x01"s})
    EXPECT_EQ(size_in(text), "none") << text;
}

TEST(ImageHeader, CutFilesHaveNoSize) {
  const std::string whole = "II*\0\x08\0\0\0\x02\0\0\x01\x03\0\x01\0\0\0\x05\0\0\0"s;
  for (std::size_t length = 0; length < 18; ++length) {
    const auto size = size_in(whole.substr(0, length));
    EXPECT_TRUE(size == "none" || size == "0 x 0") << length << ": " << size;
  }
}

TEST(ImageHeader, JpegsAreWalkedToTheirEnd) {
  const auto header = read_image_header(
      bytes_of(jpeg("\xff\xe0\0\x04\xff\xd9\xff\xda\0\x02\x12\xff\0\xff\xd0\xff\xda\0\x02\x34"s)));
  EXPECT_FALSE(header->cut);
  EXPECT_EQ(header->scans, 2);
  EXPECT_TRUE(read_image_header(bytes_of("\xff\xd8\xff\xda\0\x02\x12"s))->cut);
}

#ifdef ZSQ_OPENCV

std::string refusal(const std::string& bytes) {
  return test::error_message(ErrorCode::bad_input, [&] { decode_image(bytes_of(bytes), "x.png"); });
}

// Without the limit the decoder would ask for 3 TB, or for 12 GB and get them.
TEST(ImageHeader, TooManyPixelsAreNotDecoded) {
  EXPECT_NE(refusal(png(1 << 20, 1 << 20)).find("1048576 x 1048576 pixels"), std::string::npos);
  EXPECT_NE(
      refusal(jpeg("\xff\xc2\0\x0b\x08\xff\xff\xff\xff\x01\x01\x11\0"s)).find("65535 x 65535"),
      std::string::npos);
  EXPECT_NE(refusal("P5 65535 65535 255 "s).find("at most 89478485"), std::string::npos);
}

TEST(ImageHeader, TooManyScansAreNotDecoded) {
  std::string scans = "\xff\xc2\0\x0b\x08\0\x08\0\x08\x01\x01\x11\0"s;
  for (int i = 0; i < 101; ++i) scans += "\xff\xda\0\x02"s;
  EXPECT_NE(refusal(jpeg(scans)).find("more than 100 scans"), std::string::npos);
}

// OpenCV would read them, by decoders that see few images.
TEST(ImageHeader, RareFormatsAreNotDecoded) {
  EXPECT_NE(refusal("P7\nWIDTH 1\nHEIGHT 1\nDEPTH 1\nMAXVAL 255\nTUPLTYPE GRAYSCALE\nENDHDR\nx"s)
                .find("not an image that the decoder knows"),
            std::string::npos);
}

#endif

}  // namespace
}  // namespace zsq::eval::image_header_test
