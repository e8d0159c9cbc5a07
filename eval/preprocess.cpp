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

// Which of red, green and blue the network's channel c is.
std::size_t colour(const Preprocessing& p, std::size_t c) {
  return p.channel_order == ChannelOrder::bgr ? 2 - c : c;
}

std::int64_t whole(double pixels) { return static_cast<std::int64_t>(pixels); }
double real(std::int64_t pixels) { return static_cast<double>(pixels); }

Image resized(const Image& image, ImageSize to, const Preprocessing& p) {
  return p.resizer == Resizer::opencv
             ? resize_opencv(image, to.height, to.width, p.interpolation)
             : resize(image, to.height, to.width, p.interpolation, p.antialias);
}

// As torchvision's CenterCrop: an odd remainder is halved to the even neighbour, missing rows and
// columns to the lower one.
std::int64_t centre_offset(std::int64_t side, std::int64_t part) {
  return side < part ? -((part - side) / 2) : whole(std::nearbyint(real(side - part) / 2));
}

// The side that a share of it is left of by cropping.
std::int64_t uncropped(std::int64_t side, const Preprocessing& p) {
  return p.resize > 0 ? side * p.resize / std::min(p.size.height, p.size.width)
                      : whole(std::floor(real(side) / p.crop_fraction));
}

ImageSize covering(ImageSize image, const Preprocessing& p) {
  const ImageSize target{uncropped(p.size.height, p), uncropped(p.size.width, p)};
  if (p.resize > 0 || target.height == target.width) {
    const auto shorter = std::min(image.height, image.width);
    const auto side = p.resize > 0 ? p.resize : target.height;
    return {image.height * side / shorter, image.width * side / shorter};
  }
  const double ratio =
      std::min(real(image.height) / real(target.height), real(image.width) / real(target.width));
  return {whole(std::nearbyint(real(image.height) / ratio)),
          whole(std::nearbyint(real(image.width) / ratio))};
}

// The part that crop_then_resize takes.
struct Part {
  std::int64_t top, left;
  ImageSize size;
};

Part part_of(ImageSize image, const Preprocessing& p) {
  const double fraction =
      p.resize > 0 ? real(std::min(p.size.height, p.size.width)) / real(p.resize) : p.crop_fraction;
  const double scale = fraction * std::min(real(image.height) / real(p.size.height),
                                           real(image.width) / real(p.size.width));
  // A whole number of pixels that the division misses by a rounding error is still that number.
  const auto side = [&](std::int64_t of) {
    return std::max<std::int64_t>(1, whole(std::floor(real(of) * scale + 1e-9)));
  };
  const ImageSize size{side(p.size.height), side(p.size.width)};
  return {(image.height - size.height + 1) / 2, (image.width - size.width + 1) / 2, size};
}

// The whole image and what it is resized to.
ImageSize resized_size(ImageSize image, const Preprocessing& p) {
  if (p.crop_order == CropOrder::resize_then_crop) return covering(image, p);
  if (p.crop_order == CropOrder::stretch)
    return {uncropped(p.size.height, p), uncropped(p.size.width, p)};
  const double ratio =
      std::min(real(p.size.height) / real(image.height), real(p.size.width) / real(image.width));
  const auto side = [&](std::int64_t of) {
    return std::max<std::int64_t>(1, whole(std::nearbyint(real(of) * ratio)));
  };
  return {side(image.height), side(image.width)};
}

Image of_size(const Image& image, const Preprocessing& p, const std::string& name) {
  const ImageSize size{image.height, image.width};
  if (p.crop_order == CropOrder::crop_then_resize) {
    const Part part = part_of(size, p);
    return resized(crop(image, part.top, part.left, part.size.height, part.size.width), p.size, p);
  }
  if (p.crop_order != CropOrder::none) {
    const ImageSize whole_size = resized_size(size, p);
    return crop(resized(image, whole_size, p), centre_offset(whole_size.height, p.size.height),
                centre_offset(whole_size.width, p.size.width), p.size.height, p.size.width,
                p.crop_order == CropOrder::letterbox ? p.letterbox_grey : std::uint8_t{0});
  }
  if (image.height == p.size.height && image.width == p.size.width) return image;
  const auto text = [](std::int64_t height, std::int64_t width) {
    return std::to_string(height) + " x " + std::to_string(width);
  };
  throw Error(ErrorCode::bad_input,
              name + " is " + text(image.height, image.width) + " pixels (height x width), and " +
                  (p.name.empty() ? "" : "the preset '" + p.name + "' with ") +
                  "data.crop_order=none takes " + text(p.size.height, p.size.width) +
                  ": choose the preprocessing that the network was trained with");
}

}  // namespace

Box shown_part(ImageSize image, const Preprocessing& p) {
  if (p.crop_order == CropOrder::none) return {0, 0, real(image.width), real(image.height)};
  if (p.crop_order == CropOrder::crop_then_resize) {
    const Part part = part_of(image, p);
    return {real(part.left), real(part.top), real(part.size.width), real(part.size.height)};
  }
  const ImageSize size = resized_size(image, p);
  const double x = real(image.width) / real(size.width), y = real(image.height) / real(size.height);
  return {x * real(centre_offset(size.width, p.size.width)),
          y * real(centre_offset(size.height, p.size.height)), x * real(p.size.width),
          y * real(p.size.height)};
}

Image fit(const Image& image, const Preprocessing& p, const std::string& name) {
  switch (p.chroma_subsampling) {
    case ChromaSubsampling::nv12_before_resize:
      return of_size(through_nv12(image), p, name);
    case ChromaSubsampling::nv12_after_resize:
      return through_nv12(of_size(image, p, name));
    case ChromaSubsampling::none:
      break;
  }
  return of_size(image, p, name);
}

Image read_image(const std::filesystem::path& path, const Preprocessing& p) {
  const std::string name = path.string();
  return fit(decode_image(formats::read_file(path), name, p.decoder), p, name);
}

namespace {

void require_image_channels(const Preprocessing& p) {
  if (p.channels() == 1 || p.channels() == 3) return;
  throw Error(ErrorCode::usage,
              "image files have 1 or 3 channels, and the network takes " +
                  std::to_string(p.channels()) +
                  "; give its images as arrays (.npz), and take them in another form than png");
}

std::uint8_t luma(const std::uint8_t* rgb) {
  return static_cast<std::uint8_t>((19595U * rgb[0] + 38470U * rgb[1] + 7471U * rgb[2] + 32768U) >>
                                   16);
}

}  // namespace

void normalize(std::span<const std::uint8_t> pixels, const Preprocessing& p, float* planes) {
  require_image_channels(p);
  const std::size_t plane = pixels.size() / 3, channels = p.mean.size();
  for (std::size_t c = 0; c < channels; ++c) {
    std::array<float, 256> value_of;
    for (std::size_t pixel = 0; pixel < 256; ++pixel)
      value_of[pixel] = static_cast<float>(p.value(static_cast<double>(pixel), c));
    float* to = planes + c * plane;
    const std::uint8_t* from = pixels.data() + (channels == 3 ? colour(p, c) : 0);
    for (std::size_t i = 0; i < plane; ++i)
      to[i] = value_of[channels == 3 ? from[3 * i] : luma(from + 3 * i)];
  }
}

namespace {

at::Tensor normalized(const Image& ready, const Preprocessing& preprocessing) {
  at::Tensor result = at::empty({preprocessing.channels(), ready.height, ready.width}, at::kFloat);
  normalize(ready.pixels, preprocessing, result.data_ptr<float>());
  return result;
}

}  // namespace

at::Tensor preprocess(const Image& image, const Preprocessing& preprocessing,
                      const std::string& name) {
  return normalized(fit(image, preprocessing, name), preprocessing);
}

Image to_pixels(const at::Tensor& image, const Preprocessing& preprocessing) {
  require_image_channels(preprocessing);
  const at::Tensor planes = image.to(at::kCPU, at::kFloat).contiguous();
  const auto channels = static_cast<std::size_t>(preprocessing.channels());
  Image result{planes.size(1), planes.size(2), {}};
  const std::int64_t plane = result.height * result.width;
  result.pixels.resize(static_cast<std::size_t>(3 * plane));
  for (std::size_t c = 0; c < 3; ++c) {
    const std::size_t of = channels == 3 ? c : 0;
    const float* from = planes.const_data_ptr<float>() + static_cast<std::int64_t>(of) * plane;
    std::uint8_t* to = result.pixels.data() + (channels == 3 ? colour(preprocessing, c) : c);
    for (std::int64_t i = 0; i < plane; ++i) {
      const double share = preprocessing.share(static_cast<double>(from[i]), of);
      to[3 * i] = static_cast<std::uint8_t>(std::lround(255 * std::clamp(share, 0.0, 1.0)));
    }
  }
  return result;
}

at::Tensor load_image(const std::filesystem::path& path, const Preprocessing& preprocessing) {
  return normalized(read_image(path, preprocessing), preprocessing).unsqueeze(0);
}

}  // namespace zsq::eval
