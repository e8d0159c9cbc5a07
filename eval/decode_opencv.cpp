// SPDX-License-Identifier: Apache-2.0
#include <opencv2/core/mat.hpp>
#include <opencv2/core/version.hpp>
#include <opencv2/imgcodecs.hpp>

#include "core/error.h"
#include "eval/image.h"
#include "eval/image_header.h"

namespace zsq::eval {
Image decode_image(std::span<const std::byte> bytes, const std::string& name, Decoder decoder) {
  cv::Mat bgr;
  std::string reason = why_not_decoded(bytes);
  if (reason.empty()) {
    if (decoder != Decoder::opencv && decoder != Decoder::opencv_exif)
      if (auto image = decode_jpeg(bytes, decoder)) return std::move(*image);
    reason = std::string(kUndecodable);
    const int orientation = decoder == Decoder::opencv_exif ? 0 : cv::IMREAD_IGNORE_ORIENTATION;
    try {
      const cv::Mat buffer(1, static_cast<int>(bytes.size()), CV_8U,
                           const_cast<std::byte*>(bytes.data()));
      bgr = cv::imdecode(buffer, cv::IMREAD_COLOR | orientation);
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
