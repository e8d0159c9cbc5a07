// SPDX-License-Identifier: Apache-2.0
#include "eval/preset.h"

#include <algorithm>

#include "core/error.h"
#include "core/nearest_name.h"

namespace zsq::eval {
namespace {

const std::vector<Preset>& registry() {
  using enum Crop;
  using enum Interpolation;
  constexpr std::array imagenet_mean{0.485, 0.456, 0.406}, imagenet_std{0.229, 0.224, 0.225};
  constexpr std::array cifar_mean{0.4914, 0.4822, 0.4465}, cifar_std{0.2023, 0.1994, 0.2010};
  constexpr double lite_mean = 127.0 / 255, lite_std = 128.0 / 255;
  static const std::vector<Preset> presets{
      {"torchvision", resize_then_center, 256, 224, bilinear_antialias, imagenet_mean,
       imagenet_std},
      {"pytorchcv", resize_then_center, 256, 224, bilinear_antialias, imagenet_mean, imagenet_std},
      {"efficientnet_lite0",
       center_square_then_resize,
       256,
       224,
       bicubic,
       {lite_mean, lite_mean, lite_mean},
       {lite_std, lite_std, lite_std}},
      // The widely used ResNet-20 checkpoints were trained with ImageNet's statistics.
      {"cifar10", none, 0, 32, bilinear_antialias, imagenet_mean, imagenet_std},
      {"cifar100", none, 0, 32, bilinear_antialias, cifar_mean, cifar_std},
      {"pytorchcv_cifar10", none, 0, 32, bilinear_antialias, cifar_mean, cifar_std},
  };
  return presets;
}

}  // namespace

std::pair<double, double> Preset::value_range() const {
  std::pair<double, double> range{(0 - mean[0]) / std[0], (1 - mean[0]) / std[0]};
  for (std::size_t c = 1; c < mean.size(); ++c) {
    range.first = std::min(range.first, (0 - mean[c]) / std[c]);
    range.second = std::max(range.second, (1 - mean[c]) / std[c]);
  }
  return range;
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Preset& known : registry()) names.push_back(known.name);
  return names;
}

const Preset& preset(const std::string& name) {
  for (const Preset& known : registry())
    if (known.name == name) return known;
  throw Error(ErrorCode::usage, unknown_name_message("preset", name, preset_names()));
}

}  // namespace zsq::eval
