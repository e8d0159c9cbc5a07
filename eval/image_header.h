// SPDX-License-Identifier: Apache-2.0
// What an encoded image says of itself, read before a decoder allocates anything.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace zsq::eval {

// 256 MiB of RGB, the size from which Pillow warns of a decompression bomb; the largest images of
// ImageNet have 61 million.
inline constexpr std::int64_t kMaxImagePixels = 89'478'485;
// Each scan of a progressive JPEG goes over the whole image; encoders write about ten.
inline constexpr int kMaxImageScans = 100;
inline constexpr std::size_t kMaxImageBytes = 512 << 20;

struct ImageHeader {
  std::int64_t height = 0, width = 0;
  // Of a JPEG: without its end, which OpenCV fills with grey and says nothing; number of scans.
  bool cut = false;
  int scans = 0;
};

// JPEG, PNG, BMP, WebP, TIFF (its first image) and PNM. Nothing: another format, or damaged. That
// the header is whole says nothing of what follows it.
std::optional<ImageHeader> read_image_header(std::span<const std::byte> bytes);

inline constexpr const char* kUndecodable = "not an image that the decoder knows, or damaged";

// Why the bytes are not given to a decoder, in words; empty if they are.
std::string why_not_decoded(std::span<const std::byte> bytes);

}  // namespace zsq::eval
