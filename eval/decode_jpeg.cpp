// SPDX-License-Identifier: Apache-2.0
#include <csetjmp>
#include <cstdio>
// jpeglib.h needs what <cstdio> declares, and comes after it.
#include <jpeglib.h>

#include "eval/image.h"

namespace zsq::eval {
namespace {

struct ErrorHandler {
  jpeg_error_mgr base;  // first, so that libjpeg's pointer to it is one to the whole
  std::jmp_buf failed;
};

// libjpeg's way out of an error; no object with a destructor lives between here and setjmp().
[[noreturn]] void leave(j_common_ptr decoder) {
  std::longjmp(reinterpret_cast<ErrorHandler*>(decoder->err)->failed, 1);
}

void say_nothing(j_common_ptr) {}

void choose_arithmetic(jpeg_decompress_struct& jpeg, Decoder decoder) {
  jpeg.out_color_space = JCS_RGB;
  if (decoder == Decoder::jpeg_ifast) jpeg.dct_method = JDCT_IFAST;
  if (decoder == Decoder::jpeg_float) jpeg.dct_method = JDCT_FLOAT;
  if (decoder == Decoder::jpeg_nearest_chroma) jpeg.do_fancy_upsampling = FALSE;
}

bool decompress(std::span<const std::byte> bytes, Decoder decoder, Image& image,
                jpeg_decompress_struct& jpeg, ErrorHandler& errors) {
  if (setjmp(errors.failed) != 0) return false;
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&jpeg, TRUE);
  if (jpeg.num_components == 4) return false;
  choose_arithmetic(jpeg, decoder);
  jpeg_start_decompress(&jpeg);
  image.height = jpeg.output_height;
  image.width = jpeg.output_width;
  image.pixels.resize(static_cast<std::size_t>(image.height * image.width * 3));
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW row = image.pixels.data() + std::size_t{3} * jpeg.output_scanline * jpeg.output_width;
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_decompress(&jpeg);
  return true;
}

}  // namespace

std::optional<Image> decode_jpeg(std::span<const std::byte> bytes, Decoder decoder) {
  Image image;
  jpeg_decompress_struct jpeg{};
  ErrorHandler errors{};
  jpeg.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = leave;
  errors.base.output_message = say_nothing;
  const bool whole = decompress(bytes, decoder, image, jpeg, errors);
  jpeg_destroy_decompress(&jpeg);
  if (!whole) return std::nullopt;
  return image;
}

}  // namespace zsq::eval
