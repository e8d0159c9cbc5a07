// SPDX-License-Identifier: Apache-2.0
#include "generator/augment.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "generator/upload.h"

namespace zsq::generator {
namespace {

constexpr double kSmallestCrop = 0.5;  // of the image's area

at::Tensor resample(const at::Tensor& images, const at::Tensor& rows, const at::Tensor& columns) {
  return at::matmul(at::matmul(rows, images), columns.transpose(-2, -1));
}

// [N, 1, size, size]: output pixel i reads at begin + (i + 1/2) length / size - 1/2.
at::Tensor bilinear(const at::Tensor& begin, const at::Tensor& length, std::int64_t size,
                    const at::Tensor& flip) {
  const auto pixel = at::arange(size, begin.options());
  const auto step = length.unsqueeze(1).div(static_cast<double>(size));
  auto position = pixel.add(0.5).mul(step).add(begin.unsqueeze(1)).sub(0.5).clamp(0, size - 1);
  if (flip.defined()) position = at::where(flip.unsqueeze(1), position.flip(1), position);
  return position.unsqueeze(2).sub(pixel).abs().neg().add(1).clamp_min(0).unsqueeze(1);
}

// The filter along one side, as a circulant matrix: a product in frequencies is a circular
// convolution, and the inverse transform of a real, even gain is a sum of cosines.
at::Tensor low_pass_matrix(std::int64_t size, double cutoff) {
  const std::int64_t middle = size / 2;
  const auto place = at::arange(size, at::kDouble);
  const auto frequency = place.sub(static_cast<double>(middle));
  const auto gain = frequency.square().div(-2 * cutoff * cutoff).exp();
  const auto phase = place.unsqueeze(1).mul(frequency).mul(2 * std::numbers::pi / size);
  const auto kernel = phase.cos().matmul(gain).div(static_cast<double>(size));
  const auto distance = place.unsqueeze(1).sub(place).remainder(size).to(at::kLong);
  return kernel.index_select(0, distance.flatten()).view({size, size});
}

// Of the type and on the device of the images.
at::Tensor like(const at::Tensor& images, const at::Tensor& weights) {
  return upload(weights.to(images.scalar_type()), images.device());
}

}  // namespace

Crops Crops::rows(std::int64_t first, std::int64_t count) const {
  const auto of = [&](const at::Tensor& t) { return t.narrow(0, first, count); };
  return {of(top), of(left), of(height), of(width), of(flip)};
}

Crops draw_crops(std::int64_t n, std::int64_t height, std::int64_t width,
                 const ImageOptions& options, const at::Generator& stream) {
  const auto h = static_cast<double>(height), w = static_cast<double>(width);
  const auto uniform = at::rand({6, n}, stream, at::kFloat);
  const auto whole = uniform[0].ge(options.augment_share);
  const auto area = uniform[1].mul(1 - kSmallestCrop).add(kSmallestCrop);
  const auto ratio = uniform[2].mul(2).sub(1).mul(std::log(4.0 / 3)).exp();
  Crops crops;
  crops.height = at::where(whole, h, area.div(ratio).sqrt().clamp_max(1).mul(h));
  crops.width = at::where(whole, w, area.mul(ratio).sqrt().clamp_max(1).mul(w));
  crops.top = crops.height.neg().add(h).mul(uniform[3]);
  crops.left = crops.width.neg().add(w).mul(uniform[4]);
  crops.flip = uniform[5].lt(options.flip ? 0.5 : 0.0).logical_and(whole.logical_not());
  return crops;
}

at::Tensor augment(const at::Tensor& images, const Crops& crops) {
  const auto height = static_cast<double>(images.size(2)),
             width = static_cast<double>(images.size(3));
  const auto whole = crops.height.eq(height)
                         .logical_and(crops.width.eq(width))
                         .logical_and(crops.top.eq(0))
                         .logical_and(crops.left.eq(0))
                         .logical_and(crops.flip.logical_not());
  // Such an image would be multiplied by ones and zeros.
  const auto others = whole.logical_not().nonzero().squeeze(1);
  if (others.numel() == 0) return images;
  const auto of = [&](const at::Tensor& t) { return t.index_select(0, others); };
  const auto rows = bilinear(of(crops.top), of(crops.height), images.size(2), {});
  const auto columns = bilinear(of(crops.left), of(crops.width), images.size(3), of(crops.flip));
  const auto which = upload(others, images.device());
  return images.index_copy(
      0, which, resample(images.index_select(0, which), like(images, rows), like(images, columns)));
}

at::Tensor draw_mixture(std::int64_t n, std::int64_t height, std::int64_t width,
                        const ImageOptions& options, const at::Generator& stream) {
  const auto uniform = at::rand({2, n, 1, 1, 1}, stream, at::kFloat);
  const auto share = uniform[0], kind = uniform[1];
  auto everywhere = share.mul(kind.lt(options.mixup_share));
  if (options.cutmix_share == 0) return everywhere;
  const auto place = at::rand({2, n, 1, 1, 1}, stream, at::kFloat);
  const auto side = share.sqrt(), room = side.neg().add(1);
  const auto inside = [&](std::int64_t size, const at::Tensor& where) {
    const auto centre = at::arange(size, at::kFloat).add(0.5).div(static_cast<double>(size));
    const auto offset = centre.sub(where.mul(room));
    return offset.ge(0).logical_and(offset.lt(side));
  };
  const auto rectangle =
      inside(height, place[0]).transpose(2, 3).logical_and(inside(width, place[1]));
  const auto cut =
      kind.ge(options.mixup_share).logical_and(kind.lt(options.mixup_share + options.cutmix_share));
  return everywhere.add(rectangle.logical_and(cut));
}

at::Tensor low_pass(const at::Tensor& images, double cutoff) {
  return resample(images, like(images, low_pass_matrix(images.size(2), cutoff)),
                  like(images, low_pass_matrix(images.size(3), cutoff)))
      .contiguous(images.suggest_memory_format());
}

at::Tensor cutmix(const at::Tensor& images, std::uint64_t seed) {
  at::Tensor result = images.clone();
  const std::int64_t height = images.size(2), width = images.size(3), n = images.size(0);
  const auto side =
      static_cast<std::int64_t>(std::sqrt(0.5) * static_cast<double>(std::min(height, width)));
  const auto place = at::rand({n, 2}, at::detail::createCPUGenerator(seed), at::kDouble);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto start = [&](int axis, std::int64_t room) {
      return static_cast<std::int64_t>(place[i][axis].item<double>() *
                                       static_cast<double>(room + 1));
    };
    const auto top = start(0, height - side), left = start(1, width - side);
    const auto square = [&](const at::Tensor& image) {
      return image.narrow(1, top, side).narrow(2, left, side);
    };
    square(result[i]).copy_(square(images[(i + 1) % n]));
  }
  return result;
}

}  // namespace zsq::generator
