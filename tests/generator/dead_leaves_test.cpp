// SPDX-License-Identifier: Apache-2.0
#include "generator/dead_leaves.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/fft_fft2.h>
#include <ATen/ops/fft_fftfreq.h>
#include <ATen/ops/hann_window.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>

namespace zsq::generator {
namespace {

at::Tensor draw(std::int64_t n, std::uint64_t seed = 0, std::int64_t first = 0) {
  return dead_leaves_images(first, n, {3, 64, 48}, seed);
}

TEST(DrawImages, AreTheSameWithAnyNumberOfThreads) {
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const auto alone = dead_leaves_images(0, 3, {3, 224, 224}, 7);
  at::set_num_threads(2);
  const auto together = dead_leaves_images(0, 3, {3, 224, 224}, 7);
  at::set_num_threads(before);
  EXPECT_TRUE(alone.equal(together));
}

TEST(DrawImages, DependOnSeedAndNumberAlone) {
  const auto images = draw(6);
  EXPECT_EQ(images.sizes(), at::IntArrayRef({6, 3, 64, 48}));
  EXPECT_TRUE(draw(6).equal(images));
  EXPECT_TRUE(draw(2, 0, 3).equal(images.slice(0, 3, 5)));
  for (std::int64_t i = 0; i < 6; ++i) {
    EXPECT_FALSE(draw(6, 1)[i].equal(images[i]));
    EXPECT_FALSE(images[(i + 1) % 6].equal(images[i]));
  }
}

TEST(DrawImages, FillTheRangeOfColours) {
  const auto images = draw(40);
  EXPECT_GE(images.min().item<float>(), 0);
  EXPECT_LE(images.max().item<float>(), 1);
  const auto mean = images.mean({2, 3});  // of each image and channel
  EXPECT_NEAR(mean.mean().item<double>(), 0.5, 0.1);
  EXPECT_GT(mean.std().item<double>(), 0.1);                        // images differ,
  EXPECT_GT(mean.std(1, false).mean().item<double>(), 0.05);        // and so do channels,
  EXPECT_GT(images.flatten(2).std(-1).mean().item<double>(), 0.1);  // and pixels.
  const auto border = images.eq(0).logical_or(images.eq(1)).to(at::kFloat);
  EXPECT_LT(border.mean().item<double>(), 0.2);
}

TEST(DrawImages, AreAlikeNearBy) {
  const auto grey = draw(40).mean(1);
  const auto flat = grey - grey.mean({1, 2}, true);
  const auto correlation = [&](std::int64_t distance) {
    return (flat.slice(2, distance) * flat.slice(2, 0, -distance)).mean() / flat.square().mean();
  };
  EXPECT_GT(correlation(1).item<double>(), 0.6);
  EXPECT_GT(correlation(1).item<double>(), correlation(4).item<double>() + 0.05);
  EXPECT_GT(correlation(4).item<double>(), correlation(16).item<double>() + 0.05);
}

// Of the logarithm of the power, by that of the frequency, between `from` and `to` per pixel.
double slope(const at::Tensor& images, double from, double to) {
  const auto n = images.size(-1);
  const auto grey = images.mean(1);
  const auto window = at::hann_window(n);
  const auto flat = (grey - grey.mean({1, 2}, true)) * window * window.unsqueeze(1);
  const auto power = at::fft_fft2(flat).abs().square().mean(0);
  const auto f = at::fft_fftfreq(n);
  const auto frequency = (f.square() + f.square().unsqueeze(1)).sqrt();
  std::vector<at::Tensor> x, y;  // a ring counts as one point
  for (double low = from; low < to; low *= 1.25) {
    const auto ring = frequency.ge(low).logical_and(frequency.lt(low * 1.25));
    x.push_back(frequency.masked_select(ring).mean().log());
    y.push_back(power.masked_select(ring).mean().log());
  }
  const auto dx = at::stack(x) - at::stack(x).mean(), dy = at::stack(y) - at::stack(y).mean();
  return ((dx * dy).sum() / dx.square().sum()).item<double>();
}

TEST(DrawImages, HaveTheSpectrumOfPhotographs) {
  const auto images = dead_leaves_images(0, 48, {3, 128, 128}, 0);
  for (const auto& [from, to] : {std::pair{0.03, 0.12}, {0.12, 0.45}}) {
    EXPECT_LT(slope(images, from, to), -1) << from;
    EXPECT_GT(slope(images, from, to), -3) << from;
  }
}

// Between edges brightness falls evenly, and what bends it is texture, as fine as pixels.
TEST(DrawImages, HaveTexture) {
  const auto images = dead_leaves_images(0, 24, {1, 96, 96}, 0).squeeze(1);
  const auto bend =
      (images.slice(2, 2) - images.slice(2, 1, -1) * 2 + images.slice(2, 0, -2)).abs().flatten(1);
  const auto typical = std::get<0>(bend.median(1));
  EXPECT_GT(typical.median().item<double>(), 5e-3);
  EXPECT_LT(typical.max().item<double>(), 0.1);
}

}  // namespace
}  // namespace zsq::generator
