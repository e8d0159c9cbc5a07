// SPDX-License-Identifier: Apache-2.0
#include "eval/image.h"

#include "core/error.h"
#include "eval/image_header.h"
#include "formats/atomic_file.h"
#include "tests/fuzz/targets.h"

namespace zsq::fuzz {

// By each decoder; what one refuses the next one gets all the same.
void image(File file) {
  const auto bytes = formats::read_file(file);
  for (const Decoder decoder : {Decoder::jpeg_ifast, Decoder::opencv_exif}) try {
      eval::decode_image(bytes, file.string(), decoder);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::bad_input) throw;
    }
  if (eval::why_not_decoded(bytes).empty()) {  // as a build without OpenCV decodes
    static_cast<void>(eval::decode_png(bytes));
    static_cast<void>(eval::decode_png_indices(bytes));
    static_cast<void>(eval::decode_webp(bytes));
  }
  eval::decode_image(bytes, file.string());
}

}  // namespace zsq::fuzz
