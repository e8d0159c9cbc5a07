// SPDX-License-Identifier: Apache-2.0
// Preprocessing by name; recorded in every result. No torch, no OpenCV.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace zsq::eval {

enum class Crop { none, resize_then_center, center_square_then_resize };
enum class Interpolation { bilinear_antialias, bicubic };

struct Preset {
  std::string name;
  Crop crop = Crop::none;
  std::int64_t resize = 0, size = 0;  // pixels
  Interpolation interpolation = Interpolation::bilinear_antialias;
  std::array<double, 3> mean{}, std{};  // x = (pixel / 255 - mean) / std

  // Smallest and largest value that any pixel can take: what the image quantizer has to cover.
  std::pair<double, double> value_range() const;
};

// torchvision, pytorchcv, efficientnet_lite0, cifar10, cifar100, pytorchcv_cifar10 (registry in
// preset.cpp).
std::vector<std::string> preset_names();
const Preset& preset(const std::string& name);  // Error(usage) names the nearest

}  // namespace zsq::eval
