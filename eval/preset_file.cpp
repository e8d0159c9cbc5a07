// SPDX-License-Identifier: Apache-2.0
// What other libraries write beside their weights, in keys of this one.
#include <algorithm>
#include <cmath>

#include "eval/config_file.h"
#include "eval/preset.h"

namespace zsq::eval {
namespace {

constexpr auto kMostPixels = static_cast<std::int64_t>(kLargestSide);

struct FilterName {
  const char* name;
  Interpolation filter;
};
// In the order of Pillow's numbers.
constexpr FilterName kFilters[] = {
    {"nearest", Interpolation::nearest},   {"lanczos", Interpolation::lanczos},
    {"bilinear", Interpolation::bilinear}, {"bicubic", Interpolation::bicubic},
    {"box", Interpolation::box},           {"hamming", Interpolation::hamming}};

std::int64_t pixels(double side) { return static_cast<std::int64_t>(std::floor(side)); }

// ---- Hugging Face ----

std::optional<std::int64_t> side(const ConfigFile& file, const std::string& key) {
  return file.integer(key, 1, kMostPixels);
}

std::optional<ImageSize> height_and_width(const ConfigFile& file, const std::string& key) {
  const auto object = file.object(key);
  if (!object) {
    const auto one = side(file, key);
    return one ? std::optional(ImageSize{*one, *one}) : std::nullopt;
  }
  const auto height = side(*object, "height"), width = side(*object, "width");
  if (!height || !width) file.refuse(key, "a number of pixels, or height and width");
  return ImageSize{*height, *width};
}

// The shorter side that the image is resized to, where the aspect ratio stays. A bare number means
// that to image processors that crop, and a square to the others and to ViT's kin.
std::optional<std::int64_t> shortest_edge(const ConfigFile& file, bool crops) {
  const auto object = file.object("size");
  const bool by_fraction = file.has("crop_pct");
  if (object && object->has("shortest_edge")) {
    if (object->has("longest_edge"))
      file.refuse("size", "shortest_edge alone, or height and width");
    return side(*object, "shortest_edge");
  }
  const auto type =
      file.text("image_processor_type").value_or(file.text("feature_extractor_type").value_or(""));
  const bool square =
      type.starts_with("ViT") || type.starts_with("DeiT") || type.starts_with("Beit");
  if (!by_fraction && (object || !crops || square)) return std::nullopt;
  const auto size = height_and_width(file, "size");
  if (size && size->height != size->width) file.refuse("size", "equal sides beside crop_pct");
  return size ? std::optional(size->height) : std::nullopt;
}

void read_geometry(const ConfigFile& file, PreprocessingOptions& keys) {
  const auto crop = height_and_width(file, "crop_size");
  const bool crops = file.boolean("do_center_crop").value_or(crop.has_value());
  const auto fraction = file.number("crop_pct", 0.01, 1);
  if (!file.boolean("do_resize").value_or(true)) {
    if (crops) file.refuse("do_resize", "true beside do_center_crop");
    keys.crop_order = CropOrder::none;
    keys.size = height_and_width(file, "size");
    return;
  }
  if (const auto shorter = shortest_edge(file, crops)) {
    // ConvNext's processor, which ResNet and RegNet share, crops by crop_pct alone, and from 384
    // pixels on stretches.
    const bool stretches = fraction && !crop && *shorter >= 384;
    if (!fraction && !crops) file.refuse("do_center_crop", "true, for images of one size");
    if (!fraction && !crop) file.refuse("crop_size", "a number of pixels, or height and width");
    keys.size = crop ? *crop : ImageSize{*shorter, *shorter};
    keys.crop_order = stretches ? CropOrder::stretch : CropOrder::resize_then_crop;
    if (stretches)
      keys.crop_fraction = 1;
    else
      keys.resize = fraction ? pixels(static_cast<double>(*shorter) / *fraction) : *shorter;
    return;
  }
  const auto size = height_and_width(file, "size");
  if (!size) file.refuse("size", "a number of pixels, shortest_edge, or height and width");
  keys.crop_order = CropOrder::stretch;
  keys.size = crops && crop ? *crop : *size;
  keys.resize = std::min(size->height, size->width);
  if (size->height * keys.size->width != size->width * keys.size->height)
    file.refuse("crop_size", "the aspect ratio of size");
}

void read_values(const ConfigFile& file, PreprocessingOptions& keys) {
  const bool rescales = file.boolean("do_rescale").value_or(true);
  double highest = 255;
  if (rescales) highest *= file.number("rescale_factor", 1e-6, 1e3).value_or(1.0 / 255);
  if (std::abs(highest - std::round(highest)) < 1e-9) highest = std::round(highest);
  const double lowest = rescales && file.boolean("rescale_offset").value_or(false) ? -1 : 0;
  keys.value_range = {lowest, highest + lowest};
  keys.mean = {0};
  keys.std = {1};
  if (!file.boolean("do_normalize").value_or(true)) return;
  keys.mean = file.numbers("image_mean", 3, -1e6, 1e6);
  keys.std = file.numbers("image_std", 3, 1e-6, 1e6);
  if (!keys.mean) file.refuse("image_mean", "1 or 3 numbers beside do_normalize");
  if (!keys.std) file.refuse("image_std", "1 or 3 numbers beside do_normalize");
  // EfficientNet's processor divides by the deviation once more for classification.
  if (file.boolean("include_top").value_or(false))
    for (double& deviation : *keys.std) deviation *= deviation;
}

PreprocessingOptions read_hugging_face(const ConfigFile& file) {
  for (const char* step : {"do_pad", "do_thumbnail", "do_align_long_axis"})
    if (file.boolean(step).value_or(false)) file.refuse(step, "false: there is no such step here");
  PreprocessingOptions keys;
  read_geometry(file, keys);
  read_values(file, keys);
  keys.interpolation = Interpolation::bilinear;
  if (const auto number = file.integer("resample", 0, std::ssize(kFilters) - 1))
    keys.interpolation = kFilters[*number].filter;
  if (file.boolean("do_flip_channel_order").value_or(false)) {
    keys.channel_order = ChannelOrder::bgr;
    std::reverse(keys.mean->begin(), keys.mean->end());
    std::reverse(keys.std->begin(), keys.std->end());
  }
  return keys;
}

// ---- timm ----

std::optional<ImageSize> input_size(const ConfigFile& file, const std::string& key) {
  const auto sides = file.numbers(key, 3, 1, kLargestSide);
  if (!sides) return std::nullopt;
  const bool whole =
      std::all_of(sides->begin(), sides->end(), [](double x) { return x == std::floor(x); });
  const bool known = sides->size() == 3 && (sides->front() == 3 || sides->front() == 1);
  if (!known || !whole) file.refuse(key, "[3, height, width] or, of grey images, [1, ...]");
  return ImageSize{pixels((*sides)[1]), pixels((*sides)[2])};
}

PreprocessingOptions read_timm(const ConfigFile& file, const ImageSize& own) {
  PreprocessingOptions keys;
  const auto size = input_size(file, "input_size"), test = input_size(file, "test_input_size");
  if (size && file.boolean("fixed_input_size").value_or(false)) keys.size = size;
  // Every other size is the model's own.
  const bool tests = test == own && size != own && file.has("test_crop_pct");
  keys.crop_fraction = file.number(tests ? "test_crop_pct" : "crop_pct", 0.01, 1).value_or(0.875);
  const auto mode = file.text("crop_mode").value_or("center");
  if (mode != "center" && mode != "squash") file.refuse("crop_mode", "center or squash");
  keys.crop_order = mode == "squash" ? CropOrder::stretch : CropOrder::resize_then_crop;
  const auto name = file.text("interpolation").value_or("bicubic");
  const auto* known = std::find_if(std::begin(kFilters), std::end(kFilters),
                                   [&](const FilterName& filter) { return filter.name == name; });
  if (known == std::end(kFilters))
    file.refuse("interpolation", "nearest, lanczos, bilinear, bicubic, box or hamming");
  keys.interpolation = known->filter;
  keys.mean = file.numbers("mean", 3, -1e6, 1e6);
  keys.std = file.numbers("std", 3, 1e-6, 1e6);
  if (!keys.mean) keys.mean = {0.485, 0.456, 0.406};
  if (!keys.std) keys.std = {0.229, 0.224, 0.225};
  return keys;
}

bool has_any(const ConfigFile& file, std::initializer_list<const char*> keys) {
  return std::any_of(keys.begin(), keys.end(), [&](const char* key) { return file.has(key); });
}

}  // namespace

PreprocessingOptions read_preset_file(const std::filesystem::path& path, const ImageSize& own) {
  const ConfigFile file(path);
  PreprocessingOptions keys;
  if (const auto nested = file.object("pretrained_cfg"))
    keys = read_timm(*nested, own);
  else if (has_any(file, {"image_mean", "do_normalize", "do_rescale", "do_resize", "resample"}))
    keys = read_hugging_face(file);
  else if (has_any(file, {"input_size", "interpolation", "crop_pct", "mean"}))
    keys = read_timm(file, own);
  else
    file.refuse(
        "no preprocessing in it; expected Hugging Face's preprocessor_config.json (do_resize, "
        "image_mean, ...) or a configuration of timm (input_size, interpolation, mean, ...)");
  keys.preset = path.string();
  return keys;
}

}  // namespace zsq::eval
