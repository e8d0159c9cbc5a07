// SPDX-License-Identifier: Apache-2.0
// 8-bit RGB images: decode, encode and resize. No torch; only *_opencv.cpp see OpenCV.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "eval/preset.h"

namespace zsq::eval {

struct Image {
  std::int64_t height = 0, width = 0;
  std::vector<std::uint8_t> pixels;  // [height, width, 3]: red, green, blue
};

// JPEG, PNG and whatever else the build's decoder knows; grey becomes RGB, transparency and EXIF
// orientation are ignored. Error(bad_input) names `name` where the bytes are damaged or cut short,
// and tells of a build without a decoder.
Image decode_image(std::span<const std::byte> bytes, const std::string& name);

// Name and version; another decoder may give other pixels.
std::string decoder_name();

// Error(bad_input) tells of a build without an encoder.
std::vector<std::byte> encode_png(const Image& image);

// Separable resampling with Pillow's arithmetic: a triangle (bilinear) or the Keys cubic with a =
// -0.5, widened by the scale where the image shrinks (antialiasing); columns first, then rows, each
// pass with 22-bit fixed-point weights, rounded half up to 8 bits.
Image resize(const Image& image, std::int64_t height, std::int64_t width, Interpolation filter);

// The part [top, top + height) x [left, left + width), which lies inside the image.
Image crop(const Image& image, std::int64_t top, std::int64_t left, std::int64_t height,
           std::int64_t width);

}  // namespace zsq::eval
