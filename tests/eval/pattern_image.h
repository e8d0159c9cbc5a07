// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "eval/image.h"

namespace zsq::eval {

// Every pixel differs from its neighbours, the channels from each other.
inline Image pattern_image(std::int64_t height, std::int64_t width) {
  Image image{height, width, {}};
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x)
      for (std::int64_t c = 0; c < 3; ++c)
        image.pixels.push_back(static_cast<std::uint8_t>(x * 97 + y * 61 + c * 85 + x * y * 31));
  return image;
}

}  // namespace zsq::eval
