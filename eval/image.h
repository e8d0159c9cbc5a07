// SPDX-License-Identifier: Apache-2.0
// 8-bit RGB images: decode, encode and resize. No torch; only *_opencv.cpp see OpenCV, without
// which a build reads JPEG, PNG and WebP.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
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
// are not reached. Grey becomes RGB, transparency is ignored, and EXIF orientation by all but
// Decoder::opencv_exif. Error(bad_input) names `name` if the bytes are damaged, cut short or
// declare too large an image (eval/image_header.h).
Image decode_image(std::span<const std::byte> bytes, const std::string& name,
                   Decoder decoder = Decoder::opencv);

// A JPEG by libjpeg, of bytes that decode_image() has looked at. Nothing: another format, damaged,
// or of four colours (CMYK), which OpenCV alone turns into RGB.
std::optional<Image> decode_jpeg(std::span<const std::byte> bytes, Decoder decoder);

// Nothing: another format, or damaged.
std::optional<Image> decode_png(std::span<const std::byte> bytes);
// A mask: (index, 255, 0) of each pixel, the index into the palette or the grey value as stored, so
// that what crop() adds, (0, 0, 0), differs. Nothing as well where pixels are colours or 16 bits.
std::optional<Image> decode_png_indices(std::span<const std::byte> bytes);
std::optional<Image> decode_webp(std::span<const std::byte> bytes);

// Name and version; another decoder may give other pixels.
std::string decoder_name();

std::vector<std::byte> encode_png(const Image& image);

// Separable resampling with the arithmetic of Pillow until 12 (13 takes rows first where an image
// becomes much lower: findings/pillow_resize_pass_order.sh): columns first, then rows, each pass
// with 22-bit fixed-point weights, rounded half up to 8 bits; nearest picks. Filters and their
// supports: box 0.5, bilinear (a triangle) and hamming 1, bicubic (Keys, a = -0.5) 2, lanczos 3.
// With `antialias` they are widened by the scale as the image shrinks, and cut off at the border,
// as Pillow does it. Without, as PyTorch and OpenCV do it: never widened, the border repeated, a =
// -0.75.
Image resize(const Image& image, std::int64_t height, std::int64_t width, Interpolation filter,
             bool antialias = true);

// cv::resize with INTER_NEAREST, _AREA (box), _LINEAR, _CUBIC or _LANCZOS4. Error(usage): hamming;
// Error(bad_input): a build without OpenCV.
Image resize_opencv(const Image& image, std::int64_t height, std::int64_t width,
                    Interpolation filter);

// To NV12 and back: BT.601 in limited range, a luma value per pixel, two chroma values per 2 x 2
// pixels (their mean; at an odd border of the pixels that are there), each rounded to 8 bits and
// repeated in the conversion to RGB. (255, 0, 0) becomes Y 81, Cb 90, Cr 240, and (254, 0, 0).
Image through_nv12(const Image& image);

// The part [top, top + height) x [left, left + width); what lies outside the image is
// grey, all three values `grey`.
Image crop(const Image& image, std::int64_t top, std::int64_t left, std::int64_t height,
           std::int64_t width, std::uint8_t grey = 0);

}  // namespace zsq::eval
