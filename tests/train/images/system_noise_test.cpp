// SPDX-License-Identifier: Apache-2.0
#include "train/images/system_noise.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/upsample_bicubic2d.h>
#include <gtest/gtest.h>

namespace zsq::train {
namespace {

PixelValues values() {
  PixelValues result;
  for (std::size_t c = 0; c < 3; ++c) {
    result.black[c] = -2.0 - static_cast<double>(c);
    result.white[c] = 2.0 + 0.5 * static_cast<double>(c);
  }
  return result;
}

at::Tensor pixels_of(const at::Tensor& images) {
  const auto v = values();
  auto result = images.clone();
  for (std::int64_t c = 0; c < 3; ++c) {
    const auto i = static_cast<std::size_t>(c);
    result.select(1, c).sub_(v.black[i]).div_(v.white[i] - v.black[i]).mul_(255);
  }
  return result;
}

// Smooth, so that another filter moves little.
at::Tensor smooth_images(std::int64_t n) {
  const auto corners = at::rand({n, 3, 4, 4});
  return at::upsample_bicubic2d(corners, std::array<std::int64_t, 2>{18, 21}, false)
      .clamp(0.2, 0.8)
      .mul(3)
      .sub(1.5);
}

// The hand-worked pixels of eval's test of the same name.
TEST(SystemNoise, Nv12ByHand) {
  const auto pair = at::tensor({255.0, 0.0, 0.0, 0.0, 0.0, 0.0}).view({1, 3, 1, 2});
  const auto back = through_nv12(pair).to(at::kInt);
  EXPECT_TRUE(back.equal(at::tensor({165, 89, 38, 0, 37, 0}, at::kInt).view({1, 3, 1, 2}))) << back;
}

TEST(SystemNoise, NoneOrAllOfTheImages) {
  const auto images = smooth_images(6);
  EXPECT_TRUE(SystemNoise(0, values(), 1)(images, 3).equal(images));
  const auto all = SystemNoise(1, values(), 1)(images, 3);
  for (std::int64_t i = 0; i < 6; ++i) EXPECT_FALSE(all[i].equal(images[i]));
}

TEST(SystemNoise, AboutTheShareThatWasAskedFor) {
  const SystemNoise noise(0.3, values(), 1);
  const auto images = smooth_images(40);
  std::int64_t changed = 0;
  for (std::uint64_t step = 0; step < 25; ++step)
    changed += noise(images, step).ne(images).flatten(1).any(1).sum().item<std::int64_t>();
  EXPECT_NEAR(static_cast<double>(changed) / 1000, 0.3, 0.06);  // four deviations
}

TEST(SystemNoise, GivesWholePixelsNearTheOldOnes) {
  const auto images = smooth_images(4);
  const auto before = pixels_of(images);
  for (std::uint64_t step = 0; step < 20; ++step) {
    const auto after = pixels_of(SystemNoise(1, values(), 1)(images, step));
    EXPECT_LT((after - after.round()).abs().max().item<double>(), 1e-3);
    EXPECT_GE(after.min().item<double>(), -1e-3);
    EXPECT_LE(after.max().item<double>(), 255 + 1e-3);
    // NV12 halves the chroma's resolution, so luma is what stays.
    EXPECT_LT((after - before).mean(1).abs().mean().item<double>(), 6) << step;
  }
}

TEST(SystemNoise, DependsOnSeedAndStepAlone) {
  const auto images = smooth_images(4);
  const auto once = SystemNoise(1, values(), 1)(images, 5);
  EXPECT_TRUE(SystemNoise(1, values(), 1)(images, 5).equal(once));
  EXPECT_FALSE(SystemNoise(1, values(), 2)(images, 5).equal(once));
  EXPECT_FALSE(SystemNoise(1, values(), 1)(images, 6).equal(once));
}

TEST(SystemNoise, RowsOfABatchAreThoseOfTheWhole) {
  const SystemNoise noise(0.5, values(), 1);
  const auto images = smooth_images(7);
  const auto whole = noise(images, 4);
  EXPECT_TRUE(noise(images.narrow(0, 0, 3), 4, {0, 3, 7}).equal(whole.narrow(0, 0, 3)));
  EXPECT_TRUE(noise(images.narrow(0, 3, 4), 4, {3, 4, 7}).equal(whole.narrow(0, 3, 4)));
}

// Blue first: what red gets, blue does.
TEST(SystemNoise, ChannelsInTheOtherOrder) {
  PixelValues bgr;
  bgr.black.fill(0);
  bgr.white.fill(1);
  const auto rgb = bgr;
  bgr.bgr = true;
  const auto images = at::rand({2, 3, 8, 8});
  for (std::uint64_t step = 0; step < 6; ++step)
    EXPECT_TRUE(SystemNoise(1, bgr, 1)(images.flip(1), step)
                    .flip(1)
                    .equal(SystemNoise(1, rgb, 1)(images, step)));
}

}  // namespace
}  // namespace zsq::train
