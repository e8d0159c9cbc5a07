// SPDX-License-Identifier: Apache-2.0
// 8-bit RGB images: decode, encode and resize. No torch; only *_opencv.cpp see OpenCV.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "eval/preprocessing_options.h"

namespace zsq::eval {

struct Image {
  std::int64_t height = 0, width = 0;
  std::vector<std::uint8_t> pixels;  // [height, width, 3]: red, green, blue
};

// JPEG, PNG, BMP, WebP, TIFF and PNM, recognised by their signatures: the decoder's other formats
// are not reached. Grey becomes RGB, transparency and EXIF orientation are ignored.
// Error(bad_input) names `name` if the bytes are damaged, cut short or declare too large an image
// (eval/image_header.h), and tells of a build without a decoder.
Image decode_image(std::span<const std::byte> bytes, const std::string& name);

// Name and version; another decoder may give other pixels.
std::string decoder_name();

// Error(bad_input) tells of a build without an encoder.
std::vector<std::byte> encode_png(const Image& image);

// Separable resampling with Pillow's arithmetic: columns first, then rows, each pass with 22-bit
// fixed-point weights, rounded half up to 8 bits; nearest picks. Filters and their supports: box
// 0.5, bilinear (a triangle) and hamming 1, bicubic (Keys, a = -0.5) 2, lanczos 3. With
// `antialias` they are widened by the scale as the image shrinks, and cut off at the border, as
// Pillow does it. Without, as PyTorch and OpenCV do it: never widened, the border repeated, a =
// -0.75.
Image resize(const Image& image, std::int64_t height, std::int64_t width, Interpolation filter,
             bool antialias = true);

// cv::resize with INTER_NEAREST, _AREA (box), _LINEAR, _CUBIC or _LANCZOS4. Error(usage): hamming;
// Error(bad_input): a build without OpenCV.
Image resize_opencv(const Image& image, std::int64_t height, std::int64_t width,
                    Interpolation filter);

// The part [top, top + height) x [left, left + width); what lies outside the image is black.
Image crop(const Image& image, std::int64_t top, std::int64_t left, std::int64_t height,
           std::int64_t width);

}  // namespace zsq::eval
