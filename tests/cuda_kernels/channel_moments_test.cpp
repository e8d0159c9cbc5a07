// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/channel_moments.h"

#include <ATen/Parallel.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>

#include "tests/cuda_kernels/helpers.h"

namespace zsq::cuda_kernels {
namespace {

using namespace zsq::test;

// Truth in double, [N, C, ...] -> [C, values].
at::Tensor per_channel(const at::Tensor& x) { return x.to(at::kDouble).transpose(0, 1).flatten(1); }

void expect_moments(const at::Tensor& x, double tolerance) {
  const auto [mean, variance] = channel_moments(x);
  const at::Tensor rows = per_channel(x);
  const at::Tensor spread = rows.var(1, false);
  EXPECT_LT(((mean - rows.mean(1)).abs() / spread.sqrt()).max().item<double>(), tolerance);
  EXPECT_LT(((variance - spread).abs() / spread).max().item<double>(), tolerance);
}

TEST(ChannelMoments, HandWorkedExample) {
  const auto [mean, variance] = channel_moments(values({1, 10, 3, 10}).reshape({2, 2}));
  EXPECT_TRUE(same_bits(mean, values({2, 10})));
  EXPECT_TRUE(same_bits(variance, values({1, 0})));
}

TEST(ChannelMoments, MatchesTruthInBothMemoryFormats) {
  for (const auto& shape : std::vector<std::vector<std::int64_t>>{
           {2, 3, 5, 7}, {16, 40, 1, 1}, {3, 17, 33, 31}, {8, 512, 7, 7}, {50, 6}}) {
    const at::Tensor x = random(shape, 3) + 1;
    expect_moments(x, 1e-6);
    if (x.dim() == 4) expect_moments(x.contiguous(at::MemoryFormat::ChannelsLast), 1e-6);
  }
  expect_moments(random({6, 5, 4, 8}).transpose(1, 3).slice(1, 0, 8, 2), 1e-6);
}

TEST(ChannelMoments, MeansFarFromZeroKeepTheirVariance) {
  // The input itself is rounded to float; the truth sees the same rounded values.
  const at::Tensor x = random({8, 4, 20, 20}) + 1000;
  const auto [mean, variance] = channel_moments(x);
  const at::Tensor rows = per_channel(x);
  EXPECT_TRUE(at::allclose(mean.to(at::kDouble), rows.mean(1), 1e-6, 0));
  EXPECT_TRUE(at::allclose(variance.to(at::kDouble), rows.var(1, false), 1e-5, 0));
}

TEST(ChannelMoments, GradientMatchesAutogradThroughAten) {
  for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    const at::Tensor x = leaf(random({3, 20, 9, 11}).contiguous(format));
    const at::Tensor a = random({20}), b = random({20});
    const auto [mean, variance] = channel_moments(x);
    const at::Tensor dx = gradient((a * mean + b * variance).sum(), x, at::ones({}));
    const at::Tensor rows = per_channel(x);
    const at::Tensor truth =
        gradient((a * rows.mean(1) + b * rows.var(1, false)).sum(), x, at::ones({}, at::kDouble));
    EXPECT_EQ(dx.strides(), x.strides());
    EXPECT_TRUE(at::allclose(dx, truth, 1e-5, 1e-8));
    const auto again = channel_moments(x);
    EXPECT_TRUE(
        at::allclose(gradient(again.first.sum(), x, at::ones({})), at::full_like(x, 1.0 / 297)));
  }
}

TEST(ChannelMoments, GradientByFiniteDifferences) {
  const at::Tensor x = leaf(random({2, 3, 4, 4}));
  const at::Tensor weight = random({3});
  const auto loss = [&] {
    const auto [mean, variance] = channel_moments(x);
    return (weight * (mean + 2 * variance)).sum();
  };
  const at::Tensor dx = gradient(loss(), x, at::ones({}));
  const double h = 1e-2;
  for (const std::int64_t i : {0, 17, 50, 95}) {
    at::Tensor entry = x.detach().view({-1})[i];
    entry += h;
    const double above = loss().item<float>();
    entry -= 2 * h;
    const double below = loss().item<float>();
    entry += h;
    EXPECT_NEAR(dx.view({-1})[i].item<float>(), (above - below) / (2 * h), 1e-4);
  }
}

TEST(ChannelMoments, TheNumberOfThreadsChangesNothing) {
  const at::Tensor x = random({5, 30, 40, 41});
  for (const at::Tensor& t : {x, x.contiguous(at::MemoryFormat::ChannelsLast)}) {
    at::set_num_threads(1);
    const auto one = channel_moments(t);
    at::set_num_threads(2);
    const auto two = channel_moments(t);
    EXPECT_TRUE(same_bits(one.second, two.second));
    EXPECT_TRUE(same_bits(one.first, two.first));
  }
}

TEST(ChannelMoments, NanShowsAndBadArgumentsAreNamed) {
  at::Tensor x = random({2, 3});
  x[0][1] = kNan;
  const auto [mean, variance] = channel_moments(x);
  EXPECT_TRUE(same_bits(at::isnan(mean).to(at::kFloat), values({0, 1, 0})));
  EXPECT_TRUE(same_bits(at::isnan(variance).to(at::kFloat), values({0, 1, 0})));
  expect_error([] { channel_moments(at::empty({0, 3})); }, "at least one element");
  expect_error([] { channel_moments(at::ones({3})); }, "channel_moments: x is Float[3] on cpu");
  expect_error([] { channel_moments(at::ones({3, 2}, at::kDouble)); }, "x is Double[3, 2]");
}

}  // namespace
}  // namespace zsq::cuda_kernels
