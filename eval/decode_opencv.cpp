// SPDX-License-Identifier: Apache-2.0
#include <opencv2/core/mat.hpp>
#include <opencv2/core/version.hpp>
#include <opencv2/imgcodecs.hpp>

#include "core/error.h"
#include "eval/image.h"

namespace zsq::eval {
namespace {

// OpenCV fills the missing part of a JPEG that was cut short with grey and says nothing. Walks the
// segments and scans up to the end-of-image marker.
bool is_cut_jpeg(std::span<const std::byte> bytes) {
  const auto at = [&](std::size_t i) { return std::to_integer<unsigned>(bytes[i]); };
  if (bytes.size() < 2 || at(0) != 0xff || at(1) != 0xd8) return false;
  bool in_scan = false;
  for (std::size_t i = 2; i + 1 < bytes.size();) {
    const unsigned marker = at(i + 1);
    if (at(i) != 0xff || marker == 0xff) {
      ++i;  // coded data, or fill before a marker
    } else if (marker == 0xd9) {
      return false;
    } else if ((in_scan && marker == 0) || (marker >= 0xd0 && marker <= 0xd7) || marker == 1) {
      i += 2;  // a stuffed byte or a marker without a length
    } else {
      in_scan = marker == 0xda;
      if (i + 3 >= bytes.size()) return true;
      i += 2 + (at(i + 2) << 8 | at(i + 3));
    }
  }
  return true;
}

}  // namespace

Image decode_image(std::span<const std::byte> bytes, const std::string& name) {
  cv::Mat bgr;
  std::string reason = "not an image that the decoder knows, or damaged";
  if (is_cut_jpeg(bytes)) {
    reason = "the file is cut short (a JPEG without its end)";
  } else if (!bytes.empty()) {
    try {
      const cv::Mat buffer(1, static_cast<int>(bytes.size()), CV_8U,
                           const_cast<std::byte*>(bytes.data()));
      bgr = cv::imdecode(buffer, cv::IMREAD_COLOR | cv::IMREAD_IGNORE_ORIENTATION);
    } catch (const cv::Exception& error) {
      reason = error.what();
    }
  }
  if (bgr.empty()) throw Error(ErrorCode::bad_input, name + ": cannot decode: " + reason);
  Image image{bgr.rows, bgr.cols, {}};
  image.pixels.reserve(bgr.total() * 3);
  for (int y = 0; y < bgr.rows; ++y) {
    const std::uint8_t* row = bgr.ptr(y);
    for (int x = 0; x < bgr.cols; ++x, row += 3)
      image.pixels.insert(image.pixels.end(), {row[2], row[1], row[0]});
  }
  return image;
}

std::string decoder_name() { return "OpenCV " CV_VERSION; }

}  // namespace zsq::eval
