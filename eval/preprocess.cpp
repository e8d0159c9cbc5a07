// SPDX-License-Identifier: Apache-2.0
#include "eval/preprocess.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "eval/evaluate.h"
#include "formats/atomic_file.h"

namespace zsq::eval {
namespace {

Image resize_then_center(const Image& image, const Preset& preset) {
  const std::int64_t shorter = std::min(image.height, image.width);
  const auto scaled = [&](std::int64_t side) { return side * preset.resize / shorter; };
  const Image resized =
      resize(image, scaled(image.height), scaled(image.width), preset.interpolation);
  // nearbyint: an odd remainder is halved to the even neighbour, as torchvision's crop does it.
  const auto offset = [&](std::int64_t side) {
    return static_cast<std::int64_t>(std::nearbyint(static_cast<double>(side - preset.size) / 2));
  };
  return crop(resized, offset(resized.height), offset(resized.width), preset.size, preset.size);
}

Image center_square_then_resize(const Image& image, const Preset& preset) {
  const std::int64_t side =
      std::max<std::int64_t>(1, preset.size * std::min(image.height, image.width) / preset.resize);
  const Image square =
      crop(image, (image.height - side + 1) / 2, (image.width - side + 1) / 2, side, side);
  return resize(square, preset.size, preset.size, preset.interpolation);
}

}  // namespace

Image fit(const Image& image, const Preset& preset, const std::string& name) {
  switch (preset.crop) {
    case Crop::resize_then_center:
      return resize_then_center(image, preset);
    case Crop::center_square_then_resize:
      return center_square_then_resize(image, preset);
    case Crop::none:
      break;
  }
  if (image.height != preset.size || image.width != preset.size) {
    const std::string expected = std::to_string(preset.size);
    throw Error(ErrorCode::bad_input, name + " is " + std::to_string(image.width) + " x " +
                                          std::to_string(image.height) + " pixels; the preset '" +
                                          preset.name + "' takes " + expected + " x " + expected +
                                          ": choose the preset that the network was trained with");
  }
  return image;
}

void normalize(std::span<const std::uint8_t> pixels, const Preset& preset, float* planes) {
  const std::size_t plane = pixels.size() / 3;
  for (std::size_t c = 0; c < 3; ++c) {
    std::array<float, 256> value_of;
    for (std::size_t pixel = 0; pixel < 256; ++pixel)
      value_of[pixel] =
          static_cast<float>((static_cast<double>(pixel) / 255 - preset.mean[c]) / preset.std[c]);
    float* to = planes + c * plane;
    const std::uint8_t* from = pixels.data() + c;
    for (std::size_t i = 0; i < plane; ++i) to[i] = value_of[from[3 * i]];
  }
}

at::Tensor preprocess(const Image& image, const Preset& preset, const std::string& name) {
  const Image ready = fit(image, preset, name);
  at::Tensor result = at::empty({3, ready.height, ready.width}, at::kFloat);
  normalize(ready.pixels, preset, result.data_ptr<float>());
  return result;
}

Image to_pixels(const at::Tensor& image, const Preset& preset) {
  const at::Tensor planes = image.to(at::kCPU, at::kFloat).contiguous();
  Image result{planes.size(1), planes.size(2), {}};
  const std::int64_t plane = result.height * result.width;
  result.pixels.resize(static_cast<std::size_t>(3 * plane));
  for (std::size_t c = 0; c < 3; ++c) {
    const float* from = planes.const_data_ptr<float>() + static_cast<std::int64_t>(c) * plane;
    std::uint8_t* to = result.pixels.data() + c;
    for (std::int64_t i = 0; i < plane; ++i) {
      const double share = static_cast<double>(from[i]) * preset.std[c] + preset.mean[c];
      to[3 * i] = static_cast<std::uint8_t>(std::lround(255 * std::clamp(share, 0.0, 1.0)));
    }
  }
  return result;
}

at::Tensor load_image(const std::filesystem::path& path, const Preset& preset) {
  const std::string name = path.string();
  return preprocess(decode_image(formats::read_file(path), name), preset, name).unsqueeze(0);
}

}  // namespace zsq::eval
