// SPDX-License-Identifier: Apache-2.0
#include <png.h>

#include <csetjmp>
#include <cstring>

#include "core/error.h"
#include "eval/image.h"

namespace zsq::eval {
namespace {

void read(png_structp png, png_bytep to, std::size_t count) {
  auto& left = *static_cast<std::span<const std::byte>*>(png_get_io_ptr(png));
  if (count > left.size()) png_error(png, "cut short");
  std::memcpy(to, left.data(), count);
  left = left.subspan(count);
}

// libpng's way out of an error; no object with a destructor lives between here and setjmp().
[[noreturn]] void leave(png_structp png, png_const_charp) { png_longjmp(png, 1); }
void say_nothing(png_structp, png_const_charp) {}

enum class Read { colours, indices };

// Values as they are stored, without gamma correction: what networks were trained on.
bool decompress(png_structp png, png_infop info, Read what, Image& image,
                std::vector<png_bytep>& rows) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_read_info(png, info);
  if (what == Read::indices) {
    png_set_packing(png);  // a byte for each, also of fewer than 8 bits
  } else {
    png_set_expand(png);  // palettes and fewer than 8 bits
    png_set_strip_16(png);
    png_set_strip_alpha(png);
    png_set_gray_to_rgb(png);
  }
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  image.height = png_get_image_height(png, info);
  image.width = png_get_image_width(png, info);
  const std::size_t row = png_get_rowbytes(png, info);
  if (row != static_cast<std::size_t>(image.width) * (what == Read::indices ? 1 : 3)) return false;
  image.pixels.resize(row * static_cast<std::size_t>(image.height));
  for (std::size_t at = 0; at < image.pixels.size(); at += row)
    rows.push_back(image.pixels.data() + at);
  png_read_image(png, rows.data());
  png_read_end(png, nullptr);
  return true;
}

std::optional<Image> decode(std::span<const std::byte> bytes, Read what) {
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, nullptr, leave, say_nothing);
  if (!png) return std::nullopt;
  png_infop info = png_create_info_struct(png);
  png_set_read_fn(png, &bytes, read);
  Image image;
  std::vector<png_bytep> rows;
  const bool decoded = info && decompress(png, info, what, image, rows);
  png_destroy_read_struct(&png, &info, nullptr);
  if (!decoded) return std::nullopt;
  return image;
}

}  // namespace

std::optional<Image> decode_png(std::span<const std::byte> bytes) {
  return decode(bytes, Read::colours);
}

std::optional<Image> decode_png_indices(std::span<const std::byte> bytes) {
  auto image = decode(bytes, Read::indices);
  if (!image) return std::nullopt;
  std::vector<std::uint8_t> pixels(3 * image->pixels.size(), 0);
  for (std::size_t i = 0; i < image->pixels.size(); ++i) {
    pixels[3 * i] = image->pixels[i];
    pixels[3 * i + 1] = 255;
  }
  image->pixels = std::move(pixels);
  return image;
}

std::vector<std::byte> encode_png(const Image& image) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.width);
  png.height = static_cast<png_uint_32>(image.height);
  png.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png);
  std::vector<std::byte> bytes(size);
  if (!png_image_write_to_memory(&png, bytes.data(), &size, 0, image.pixels.data(), 0, nullptr))
    throw Error(ErrorCode::internal,
                std::string("libpng refused to encode an image: ") + png.message);
  bytes.resize(size);
  return bytes;
}

}  // namespace zsq::eval
