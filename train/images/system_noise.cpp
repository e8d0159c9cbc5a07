// SPDX-License-Identifier: Apache-2.0
#include "train/images/system_noise.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_upsample_bicubic2d_aa.h>
#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/upsample_bicubic2d.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/upsample_nearest2d.h>
#include <ATen/ops/where.h>

#include <cmath>

#include "core/bt601.h"
#include "core/seed.h"
#include "generator/upload.h"

namespace zsq::train {
namespace {

using Size = std::array<std::int64_t, 2>;

at::Tensor to_byte(const at::Tensor& values) { return values.round().clamp(0, 255); }

at::Tensor weighted(const at::Tensor& planes, const std::array<double, 3>& weights) {
  return planes.select(1, 0)
      .mul(weights[0])
      .add(planes.select(1, 1), weights[1])
      .add(planes.select(1, 2), weights[2]);
}

// The mean of each 2 x 2 pixels, at every one of them.
at::Tensor shared_by_four(const at::Tensor& planes) {
  return at::avg_pool2d(planes, 2, 2, 0, /*ceil_mode=*/true, /*count_include_pad=*/false)
      .repeat_interleave(2, 2)
      .repeat_interleave(2, 3)
      .slice(2, 0, planes.size(2))
      .slice(3, 0, planes.size(3));
}

at::Tensor shrunk(const at::Tensor& images, const Size& size, std::int64_t filter) {
  switch (filter) {
    case 0:
      return at::upsample_nearest2d(images, size);
    case 1:
      return at::adaptive_avg_pool2d(images, size);
    case 2:
      return at::_upsample_bilinear2d_aa(images, size, /*align_corners=*/false);
    case 3:
      return at::_upsample_bicubic2d_aa(images, size, /*align_corners=*/false);
    default:
      return at::upsample_bilinear2d(images, size, /*align_corners=*/false);
  }
}
constexpr double kFilters = 5;

// [1, 3, 1, 1], on the device of the images.
at::Tensor per_channel(const std::array<double, 3>& values, const at::Tensor& images) {
  return generator::upload(at::tensor(at::ArrayRef<double>(values), at::kFloat), images.device())
      .view({1, 3, 1, 1});
}

}  // namespace

at::Tensor through_nv12(const at::Tensor& pixels) {
  const auto four = shared_by_four(pixels);
  const auto chroma = [&](const std::array<double, 3>& weights) {
    return to_byte(weighted(four, weights).add(bt601::kNoColour)).sub(bt601::kNoColour);
  };
  const auto cb = chroma(bt601::kCb), cr = chroma(bt601::kCr);
  const auto luma = to_byte(weighted(pixels, bt601::kLuma).add(bt601::kBlack));
  const auto grey = luma.sub(bt601::kBlack).mul(bt601::kGrey);
  return to_byte(at::stack(
      {grey.add(cr, bt601::kRedOfCr), grey.sub(cb, bt601::kGreenOfCb).sub(cr, bt601::kGreenOfCr),
       grey.add(cb, bt601::kBlueOfCb)},
      1));
}

at::Tensor SystemNoise::operator()(const at::Tensor& images, std::uint64_t step,
                                   const parallel::Rows& rows) const {
  const at::NoGradGuard no_grad;
  const auto stream =
      at::detail::createCPUGenerator(stream_seed(seed_, "system_noise.share", step));
  const auto chosen = rows.of(at::rand({rows.total, 1, 1, 1}, stream, at::kFloat).lt(share_));
  return at::where(generator::upload(chosen, images.device()), changed(images, step), images)
      .contiguous(images.suggest_memory_format());
}

at::Tensor SystemNoise::changed(const at::Tensor& images, std::uint64_t step) const {
  const auto stream = at::detail::createCPUGenerator(stream_seed(seed_, "system_noise.way", step));
  const auto draws = at::rand({3}, stream, at::kFloat);
  const auto draw = [&](std::int64_t i) { return draws[i].item<double>(); };
  const Size size{images.size(2), images.size(3)};
  const double factor = 1.1 + 1.4 * draw(0);
  const auto enlarged = [&](std::int64_t side) {
    return static_cast<std::int64_t>(std::lround(factor * static_cast<double>(side)));
  };
  const auto black = per_channel(values_.black, images);
  const auto range = per_channel(values_.white, images).sub(black);
  auto pixels = to_byte(images.sub(black).div(range).mul(255));
  if (values_.bgr) pixels = pixels.flip(1);
  pixels = to_byte(at::upsample_bicubic2d(pixels, Size{enlarged(size[0]), enlarged(size[1])},
                                          /*align_corners=*/false));
  pixels = to_byte(shrunk(pixels, size, static_cast<std::int64_t>(kFilters * draw(1))));
  if (draw(2) < 0.5) pixels = through_nv12(pixels);
  if (values_.bgr) pixels = pixels.flip(1);
  return pixels.div(255).mul(range).add(black);
}

}  // namespace zsq::train
