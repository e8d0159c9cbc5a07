// SPDX-License-Identifier: Apache-2.0
// Without OpenCV: the formats that nearly all photographs have, each by its own library.
#include <jpeglib.h>
#include <png.h>
#include <webp/decode.h>

#include "core/error.h"
#include "eval/image.h"
#include "eval/image_header.h"

namespace zsq::eval {

Image decode_image(std::span<const std::byte> bytes, const std::string& name, Decoder decoder) {
  std::string reason = why_not_decoded(bytes);
  if (reason.empty() && decoder == Decoder::opencv_exif)
    reason = "data.decoder=opencv_exif needs a build with OpenCV (-DZSQ_OPENCV=ON)";
  if (reason.empty()) {
    if (auto image = decode_jpeg(bytes, decoder)) return std::move(*image);
    if (auto image = decode_png(bytes)) return std::move(*image);
    if (auto image = decode_webp(bytes)) return std::move(*image);
    reason =
        "damaged, or not a JPEG of one or three colours, a PNG or a WebP; a build with OpenCV "
        "(-DZSQ_OPENCV=ON) reads more";
  }
  throw Error(ErrorCode::bad_input, name + ": cannot decode: " + reason);
}

std::string decoder_name() {
  return "libjpeg " + std::to_string(JPEG_LIB_VERSION) +
         ", libpng " PNG_LIBPNG_VER_STRING ", libwebp " + std::to_string(WebPGetDecoderVersion());
}

}  // namespace zsq::eval
