// SPDX-License-Identifier: Apache-2.0
#include "generator/augment.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <functional>
#include <numbers>

namespace zsq::generator {
namespace {

Crops crop_of(std::int64_t n, double top, double left, double height, double width,
              bool flip = false) {
  const auto all = [&](double value) { return at::full({n}, value, at::kFloat); };
  return {all(top), all(left), all(height), all(width), at::full({n}, flip, at::kBool)};
}

double largest(const at::Tensor& t) { return t.abs().max().item<double>(); }

TEST(Augment, TheWholeImageStaysAndFlipsMirror) {
  const auto images = at::randn({3, 2, 6, 10});
  EXPECT_LT(largest(augment(images, crop_of(3, 0, 0, 6, 10)) - images), 1e-6);
  EXPECT_LT(largest(augment(images, crop_of(3, 0, 0, 6, 10, true)) - images.flip(3)), 1e-6);
}

// Views of a teacher are as large as the image and begin beside it.
TEST(Augment, AMovedImageIsMoved) {
  const auto images = at::randn({2, 3, 6, 10});
  const auto made = augment(images, crop_of(2, 1, -2, 6, 10));
  EXPECT_LT(largest(made.slice(2, 0, 5).slice(3, 2) - images.slice(2, 1).slice(3, 0, 8)), 1e-6);
}

// Beside an image that is cut, one that is whole stays to the last bit, and so does its gradient.
TEST(Augment, WholeImagesOfABatchAreNotTouched) {
  ImageOptions options;
  const auto crops = draw_crops(16, 9, 12, options, at::detail::createCPUGenerator(5));
  const auto whole = crops.height.eq(9).logical_and(crops.width.eq(12));
  const auto count = whole.sum().item<std::int64_t>();
  ASSERT_GT(count, 0);
  ASSERT_LT(count, 16);
  auto images = at::randn({16, 3, 9, 12}).requires_grad_(true);
  const auto made = augment(images, crops);
  const auto weight = at::randn_like(images);
  (made * weight).sum().backward();
  for (std::int64_t i = 0; i < 16; ++i) {
    EXPECT_EQ(made[i].equal(images[i]), whole[i].item<bool>()) << i;
    EXPECT_EQ(images.grad()[i].equal(weight[i]), whole[i].item<bool>()) << i;
    const auto alone = augment(images.narrow(0, i, 1), crops.rows(i, 1));
    EXPECT_LT(largest(alone[0] - made[i]), 1e-6) << i;
  }
}

// A crop of whole pixels is a slice, resized; at its border, the crop alone has nothing beyond.
TEST(Augment, IsABilinearResizeOfTheCrop) {
  const auto images = at::randn({2, 3, 8, 12});
  const auto made = augment(images, crop_of(2, 2, 3, 4, 6));
  const auto truth =
      at::upsample_bilinear2d(images.narrow(2, 2, 4).narrow(3, 3, 6), {8, 12}, false);
  const auto inner = [](const at::Tensor& t) { return t.narrow(2, 1, 6).narrow(3, 1, 10); };
  EXPECT_LT(largest(inner(made - truth)), 1e-5);
}

// The loss is linear in a pixel times its weight, squared: central differences are exact up to
// rounding.
TEST(Augment, GradientIsTheSlope) {
  ImageOptions options;
  options.augment_share = 1;
  const auto stream = at::detail::createCPUGenerator(3);
  const auto crops = draw_crops(2, 5, 6, options, stream);
  const auto start = at::randn({2, 1, 5, 6}, at::kDouble), weight = at::randn_like(start);
  const auto loss = [&](const at::Tensor& x) {
    return (augment(x, crops).square() * weight).sum();
  };
  auto x = start.clone().requires_grad_(true);
  loss(x).backward();
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    constexpr double kStep = 1e-3;
    const auto moved = [&](double by) {
      auto y = start.clone();
      y.view(-1)[i] += by;
      return loss(y).item<double>();
    };
    EXPECT_NEAR(x.grad().view(-1)[i].item<double>(), (moved(kStep) - moved(-kStep)) / (2 * kStep),
                1e-8)
        << i;
  }
}

TEST(Augment, DrawsCropsInsideTheImageWithTheSharesAskedFor) {
  constexpr std::int64_t kDraws = 20000;
  ImageOptions options;
  options.augment_share = 0.4;
  const auto crops = draw_crops(kDraws, 32, 64, options, at::detail::createCPUGenerator(1));
  const auto share = [](const at::Tensor& t) { return t.to(at::kDouble).mean().item<double>(); };
  const auto cropped = crops.height.lt(32).logical_or(crops.width.lt(64));
  EXPECT_NEAR(share(cropped), 0.4, 0.02);
  EXPECT_NEAR(share(crops.flip), 0.2, 0.02);
  EXPECT_FALSE(crops.flip.logical_and(cropped.logical_not()).any().item<bool>());
  for (const auto& [begin, length, side] :
       {std::tuple{crops.top, crops.height, 32.0}, {crops.left, crops.width, 64.0}}) {
    EXPECT_GE(begin.min().item<double>(), 0);
    EXPECT_LE((begin + length).max().item<double>(), side + 1e-3);
  }
  const auto area = crops.height * crops.width / (32.0 * 64);
  EXPECT_GT(area.min().item<double>(), 0.42);  // 0.5, less what the frame cuts off a long side
  EXPECT_LT(area.min().item<double>(), 0.52);

  options.flip = false;
  EXPECT_FALSE(draw_crops(kDraws, 32, 64, options, at::detail::createCPUGenerator(1))
                   .flip.any()
                   .item<bool>());
}

// f64 [draws, 8, 16] for images of that size.
at::Tensor mixture_of(double mixup_share, double cutmix_share) {
  constexpr std::int64_t kDraws = 20000;
  ImageOptions options;
  options.mixup_share = mixup_share;
  options.cutmix_share = cutmix_share;
  const auto weights = draw_mixture(kDraws, 8, 16, options, at::detail::createCPUGenerator(1));
  EXPECT_EQ(weights.dim(), 4);
  return weights.to(at::kDouble).expand({kDraws, 1, 8, 16}).squeeze(1);
}

double share_of(const at::Tensor& condition) {
  return condition.to(at::kDouble).mean().item<double>();
}

void expect_uniform(const at::Tensor& values) {
  EXPECT_GE(values.min().item<double>(), 0);
  EXPECT_LE(values.max().item<double>(), 1);
  EXPECT_NEAR(values.mean().item<double>(), 1.0 / 2, 0.02);
  EXPECT_NEAR(values.var(/*unbiased=*/false).item<double>(), 1.0 / 12, 0.01);
}

TEST(Mixture, OfMixupIsAUniformShareOfThePartAskedFor) {
  const auto weights = mixture_of(0.3, 0), share = weights.mean({1, 2});
  EXPECT_LT((weights - share.view({-1, 1, 1})).abs().max().item<double>(), 1e-6);
  EXPECT_NEAR(share_of(share.gt(0)), 0.3, 0.02);
  expect_uniform(share.masked_select(share.gt(0)));
}

TEST(Mixture, OfCutmixIsARectangleOfUniformArea) {
  const auto weights = mixture_of(0, 1);
  EXPECT_EQ(share_of(weights.eq(0).logical_or(weights.eq(1))), 1);
  const auto area = weights.mean({1, 2}), rows = weights.amax(2).sum(1),
             columns = weights.amax(1).sum(1);
  expect_uniform(area);
  // A rectangle has nothing missing inside, and the shape of the image to within a pixel.
  EXPECT_LT((rows.mul(columns).div(8 * 16) - area).abs().max().item<double>(), 1e-9);
  EXPECT_LE((columns - 2 * rows).abs().max().item<double>(), 2);
  // Its place is uniform: the mean over draws is the same left and right, above and below, and
  // more in the middle.
  const auto mean = weights.mean(0);
  EXPECT_NEAR(mean[0][0].item<double>(), mean[7][15].item<double>(), 0.02);
  EXPECT_NEAR(mean[0][8].item<double>(), mean[7][8].item<double>(), 0.02);
  EXPECT_GT(mean[4][8].item<double>(), mean[0][0].item<double>() + 0.3);
}

TEST(Mixture, AnImageHasOneOfTheTwo) {
  const auto both = mixture_of(0.3, 0.5), cut = mixture_of(0, 0.5);
  const auto inside = both.gt(0).logical_and(both.lt(1)).any(2).any(1);
  EXPECT_NEAR(share_of(inside), 0.3, 0.02);
  const auto has_edge = [](const at::Tensor& weights) {
    return weights.eq(1).any(2).any(1).logical_and(weights.eq(0).any(2).any(1));
  };
  EXPECT_FALSE(inside.logical_and(has_edge(both)).any().item<bool>());
  EXPECT_NEAR(share_of(has_edge(both)), share_of(has_edge(cut)), 0.02);
  EXPECT_EQ(share_of(mixture_of(0, 0).eq(0)), 1);
}

// The transform, the gain and the backward pass, as the definition has them.
at::Tensor filtered(const at::Tensor& image, double cutoff) {
  using Complex = std::complex<double>;
  const auto height = image.size(0), width = image.size(1);
  const auto turn = [](std::int64_t a, std::int64_t n) {
    return std::polar(1.0, 2 * std::numbers::pi * static_cast<double>(a) / static_cast<double>(n));
  };
  const auto centred = [](std::int64_t k, std::int64_t n) {
    return static_cast<double>(2 * k < n ? k : k - n);
  };
  auto result = at::zeros({height, width}, at::kDouble);
  for (std::int64_t u = 0; u < height; ++u)
    for (std::int64_t v = 0; v < width; ++v) {
      Complex coefficient = 0;
      for (std::int64_t y = 0; y < height; ++y)
        for (std::int64_t x = 0; x < width; ++x)
          coefficient += image[y][x].item<double>() * turn(-u * y, height) * turn(-v * x, width);
      const double squared = std::pow(centred(u, height), 2) + std::pow(centred(v, width), 2);
      coefficient *= std::exp(-squared / (2 * cutoff * cutoff));
      for (std::int64_t y = 0; y < height; ++y)
        for (std::int64_t x = 0; x < width; ++x)
          result[y][x] += (coefficient * turn(u * y, height) * turn(v * x, width)).real() /
                          static_cast<double>(height * width);
    }
  return result;
}

// Images of one value each, so that every pixel tells which image it is of.
TEST(CutMix, ASquareOfHalfTheAreaIsOfTheNextImage) {
  const auto images = at::arange(5, at::kFloat).view({5, 1, 1, 1}).expand({5, 3, 20, 30});
  const auto mixed = cutmix(images.contiguous(), 3);
  for (std::int64_t i = 0; i < 5; ++i) {
    const auto other = mixed[i].eq(static_cast<double>((i + 1) % 5));
    EXPECT_EQ(other.sum().item<std::int64_t>(), 3 * 14 * 14);  // 20 sqrt(1/2) is 14.1
    EXPECT_EQ(other.logical_or(mixed[i].eq(static_cast<double>(i))).sum().item<std::int64_t>(),
              1800);
    EXPECT_EQ(other.any(0).any(0).sum().item<std::int64_t>(), 14);  // columns
    EXPECT_EQ(other.any(0).any(1).sum().item<std::int64_t>(), 14);  // rows
  }
}

TEST(LowPass, IsTheFilterOfTheDefinition) {
  const auto images = at::randn({1, 2, 6, 5}, at::kDouble);  // an even and an odd side
  for (const double cutoff : {0.7, 2.0}) {
    const auto made = low_pass(images, cutoff);
    for (std::int64_t c = 0; c < 2; ++c)
      EXPECT_LT(largest(made[0][c] - filtered(images[0][c], cutoff)), 1e-12) << cutoff;
  }
  EXPECT_LT(largest(low_pass(images, 1e6) - images), 1e-9);
  const auto flat = at::full({1, 1, 6, 5}, 3.0, at::kDouble);
  EXPECT_LT(largest(low_pass(flat, 0.5) - flat), 1e-12);
}

}  // namespace
}  // namespace zsq::generator
