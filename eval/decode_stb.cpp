// SPDX-License-Identifier: Apache-2.0
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_JPEG
#define STBI_NO_STDIO
#include <stb/stb_image.h>

#include <memory>

#include "eval/image.h"

namespace zsq::eval {

std::optional<Image> decode_with_stb(std::span<const std::byte> bytes) {
  int width = 0, height = 0, channels = 0;
  const std::unique_ptr<stbi_uc, void (*)(void*)> pixels(
      stbi_load_from_memory(reinterpret_cast<const stbi_uc*>(bytes.data()),
                            static_cast<int>(bytes.size()), &width, &height, &channels, 3),
      stbi_image_free);
  if (!pixels || channels == 4) return std::nullopt;
  const std::span<const stbi_uc> all(
      pixels.get(),
      std::size_t{3} * static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
  return Image{height, width, {all.begin(), all.end()}};
}

}  // namespace zsq::eval
