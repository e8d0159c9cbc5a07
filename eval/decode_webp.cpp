// SPDX-License-Identifier: Apache-2.0
#include <webp/decode.h>

#include "eval/image.h"

namespace zsq::eval {

std::optional<Image> decode_webp(std::span<const std::byte> bytes) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  int width = 0, height = 0;
  if (!WebPGetInfo(data, bytes.size(), &width, &height)) return std::nullopt;
  Image image{height, width, {}};
  image.pixels.resize(static_cast<std::size_t>(height) * static_cast<std::size_t>(width) * 3);
  if (!WebPDecodeRGBInto(data, bytes.size(), image.pixels.data(), image.pixels.size(), 3 * width))
    return std::nullopt;
  return image;
}

}  // namespace zsq::eval
