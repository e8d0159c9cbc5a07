// SPDX-License-Identifier: Apache-2.0
#include "eval/preset.h"

#include "core/error.h"
#include "core/nearest_name.h"

namespace zsq::eval {
namespace {

using List = std::vector<double>;

const List kImagenetMean{0.485, 0.456, 0.406}, kImagenetStd{0.229, 0.224, 0.225};
const List kInceptionMean{0.5}, kInceptionStd{0.5};
const List kClipMean{0.48145466, 0.4578275, 0.40821073};
const List kClipStd{0.26862954, 0.26130258, 0.27577711};
const List kCifarMean{0.4914, 0.4822, 0.4465}, kCifarStd{0.2023, 0.1994, 0.2010};

// torchvision's reference transforms, of a size that goes with the side.
PreprocessingOptions torchvision(const char* name, std::int64_t resize) {
  return {.preset = name,
          .size = ImageSize{224, 224},
          .crop_order = CropOrder::resize_then_crop,
          .resize = resize,
          .interpolation = Interpolation::bilinear,
          .mean = kImagenetMean,
          .std = kImagenetStd};
}

// tensorflow/tpu, models/official/efficientnet/preprocessing.py: the centre crop keeps
// size / (size + CROP_PADDING) of the shorter side, CROP_PADDING = 32.
PreprocessingOptions efficientnet_lite(const char* name, std::int64_t size) {
  return {.preset = name,
          .size = ImageSize{size, size},
          .crop_order = CropOrder::crop_then_resize,
          .resize = size + 32,
          .interpolation = Interpolation::bicubic,
          .value_range = List{0, 255},
          .mean = List{127},
          .std = List{128}};
}

// timm's transforms_imagenet_eval, of the model's own size.
PreprocessingOptions timm(const char* name, Interpolation interpolation, double crop_fraction,
                          const List& mean, const List& std) {
  return {.preset = name,
          .crop_order = CropOrder::resize_then_crop,
          .crop_fraction = crop_fraction,
          .interpolation = interpolation,
          .mean = mean,
          .std = std};
}

PreprocessingOptions as_they_are(const char* name, const List& mean, const List& std) {
  return {.preset = name, .crop_order = CropOrder::none, .mean = mean, .std = std};
}

const std::vector<PreprocessingOptions>& registry() {
  using enum Interpolation;
  static const std::vector<PreprocessingOptions> presets{
      torchvision("torchvision", 256),
      torchvision("torchvision_v2", 232),  // the weights that torchvision names IMAGENET1K_V2
      torchvision("pytorchcv", 256),
      efficientnet_lite("efficientnet_lite0", 224),
      efficientnet_lite("efficientnet_lite1", 240),
      efficientnet_lite("efficientnet_lite2", 260),
      efficientnet_lite("efficientnet_lite3", 280),
      efficientnet_lite("efficientnet_lite4", 300),
      // The widely used ResNet-20 checkpoints were trained with ImageNet's statistics.
      as_they_are("cifar10", kImagenetMean, kImagenetStd),
      as_they_are("cifar100", kCifarMean, kCifarStd),
      as_they_are("pytorchcv_cifar10", kCifarMean, kCifarStd),
      // What three quarters of timm's pretrained configurations say.
      timm("timm_imagenet_bilinear_0.875", bilinear, 0.875, kImagenetMean, kImagenetStd),
      timm("timm_imagenet_bicubic_0.875", bicubic, 0.875, kImagenetMean, kImagenetStd),
      timm("timm_imagenet_bicubic_0.9", bicubic, 0.9, kImagenetMean, kImagenetStd),
      timm("timm_imagenet_bicubic_0.95", bicubic, 0.95, kImagenetMean, kImagenetStd),
      timm("timm_imagenet_bicubic_1.0", bicubic, 1, kImagenetMean, kImagenetStd),
      timm("timm_inception_bicubic_0.875", bicubic, 0.875, kInceptionMean, kInceptionStd),
      timm("timm_inception_bicubic_0.9", bicubic, 0.9, kInceptionMean, kInceptionStd),
      timm("timm_inception_bicubic_1.0", bicubic, 1, kInceptionMean, kInceptionStd),
      timm("timm_clip_bicubic_1.0", bicubic, 1, kClipMean, kClipStd),
  };
  return presets;
}

}  // namespace

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const PreprocessingOptions& known : registry()) names.push_back(known.preset);
  return names;
}

PreprocessingOptions preset(const std::string& name, const ImageSize& own) {
  if (name.ends_with(".json") || name.find('/') != std::string::npos)
    return read_preset_file(name, own);
  for (const PreprocessingOptions& known : registry())
    if (known.preset == name) return known;
  throw Error(ErrorCode::usage, unknown_name_message("preset", name, preset_names()) +
                                    ", or a file (preprocessor_config.json, config.json of timm)");
}

}  // namespace zsq::eval
