// SPDX-License-Identifier: Apache-2.0
#include <opencv2/core/mat.hpp>
#include <opencv2/imgproc.hpp>

#include "core/error.h"
#include "eval/image.h"

namespace zsq::eval {
namespace {

int flag_of(Interpolation filter) {
  switch (filter) {
    case Interpolation::nearest:
      return cv::INTER_NEAREST;
    case Interpolation::box:
      return cv::INTER_AREA;
    case Interpolation::bilinear:
      return cv::INTER_LINEAR;
    case Interpolation::bicubic:
      return cv::INTER_CUBIC;
    case Interpolation::lanczos:
      return cv::INTER_LANCZOS4;
    case Interpolation::hamming:
      break;
  }
  throw Error(ErrorCode::usage,
              "data.resizer=opencv has no hamming filter; choose another data.interpolation");
}

}  // namespace

Image resize_opencv(const Image& image, std::int64_t height, std::int64_t width,
                    Interpolation filter) {
  Image result{height, width, {}};
  result.pixels.resize(static_cast<std::size_t>(height * width * 3));
  // Written in place: of the right size and type, cv::resize keeps the memory.
  cv::Mat to(static_cast<int>(height), static_cast<int>(width), CV_8UC3, result.pixels.data());
  const cv::Mat from(static_cast<int>(image.height), static_cast<int>(image.width), CV_8UC3,
                     const_cast<std::uint8_t*>(image.pixels.data()));
  cv::resize(from, to, to.size(), 0, 0, flag_of(filter));
  return result;
}

}  // namespace zsq::eval
