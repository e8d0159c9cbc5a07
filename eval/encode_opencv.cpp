// SPDX-License-Identifier: Apache-2.0
#include <opencv2/core/mat.hpp>
#include <opencv2/imgcodecs.hpp>

#include "core/error.h"
#include "eval/image.h"

namespace zsq::eval {

std::vector<std::byte> encode_png(const Image& image) {
  cv::Mat bgr(static_cast<int>(image.height), static_cast<int>(image.width), CV_8UC3);
  const std::uint8_t* from = image.pixels.data();
  for (int y = 0; y < bgr.rows; ++y) {
    std::uint8_t* to = bgr.ptr(y);
    for (int x = 0; x < bgr.cols; ++x, from += 3, to += 3) {
      to[0] = from[2];
      to[1] = from[1];
      to[2] = from[0];
    }
  }
  std::vector<std::uint8_t> bytes;
  if (!cv::imencode(".png", bgr, bytes))
    throw Error(ErrorCode::internal, "OpenCV refused to encode an image as PNG");
  const auto view = std::as_bytes(std::span(bytes));
  return {view.begin(), view.end()};
}

}  // namespace zsq::eval
