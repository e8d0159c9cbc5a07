// SPDX-License-Identifier: Apache-2.0
#include "losses/losses.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "core/error.h"
#include "tests/support/seed_each_test.h"

namespace zsq::losses {
namespace {

// The gradient of a loss against central differences in float, at every tenth element.
void expect_gradient(const at::Tensor& at_x,
                     const std::function<at::Tensor(const at::Tensor&)>& f) {
  constexpr double kStep = 1e-2, kTolerance = 2e-3;
  auto x = at_x.detach().clone().requires_grad_(true);
  f(x).backward();
  const auto gradient = x.grad().flatten();
  for (std::int64_t i = 0; i < x.numel(); i += 10) {
    const auto moved = [&](double by) {
      auto y = at_x.detach().clone();
      y.view(-1)[i] += by;
      return f(y).item<double>();
    };
    const double slope = (moved(kStep) - moved(-kStep)) / (2 * kStep);
    EXPECT_NEAR(gradient[i].item<double>(), slope, kTolerance) << "element " << i;
  }
}

TEST(SoftCrossEntropy, MatchesTheSumWrittenOut) {
  const auto logits = at::tensor({1.0f, 2.0f, 0.0f, 0.5f, -1.0f, 3.0f}).view({2, 3});
  const auto targets = at::tensor({0.2f, 0.8f, 0.0f, 0.0f, 0.0f, 1.0f}).view({2, 3});
  const double z0 = std::log(std::exp(1.0) + std::exp(2.0) + std::exp(0.0));
  const double z1 = std::log(std::exp(0.5) + std::exp(-1.0) + std::exp(3.0));
  const double expected = (0.2 * (z0 - 1) + 0.8 * (z0 - 2) + (z1 - 3)) / 2;
  EXPECT_NEAR(soft_cross_entropy(logits, targets).item<double>(), expected, 1e-6);
}

TEST(SoftCrossEntropy, GradientIsTheSlope) {
  const auto targets = at::softmax(at::randn({6, 5}), 1);
  expect_gradient(at::randn({6, 5}),
                  [&](const at::Tensor& x) { return soft_cross_entropy(x, targets); });
}

TEST(HardSampleCrossEntropy, WeighsByWhatIsMissingFromTheLabel) {
  const auto logits = at::tensor({0.0f, std::log(3.0f), 0.0f, 0.0f}).view({2, 2});
  const auto labels = at::tensor({1, 0}, at::kLong);  // probabilities 3/4 and 1/2
  const double easy = std::log(4.0 / 3), hard = std::log(2.0);
  EXPECT_NEAR(hard_sample_cross_entropy(logits, labels, 0).item<double>(), (easy + hard) / 2, 1e-6);
  EXPECT_NEAR(hard_sample_cross_entropy(logits, labels, 2).item<double>(),
              (easy / 16 + hard / 4) / 2, 1e-6);
}

TEST(HardSampleCrossEntropy, GradientIsTheSlope) {
  const auto labels = at::tensor({0, 1, 2, 3, 4, 0}, at::kLong);
  for (const double focal_gamma : {0.0, 0.5, 2.0})
    expect_gradient(at::randn({6, 5}), [&](const at::Tensor& x) {
      return hard_sample_cross_entropy(x, labels, focal_gamma);
    });
  // Where the label is certain, a weight below the first power has no usable slope; it is 0.
  auto sure = (at::tensor({200.0f, 0.0f}).view({1, 2})).requires_grad_(true);
  hard_sample_cross_entropy(sure, at::tensor({0}, at::kLong), 0.5).backward();
  EXPECT_EQ(sure.grad().abs().max().item<double>(), 0);
}

struct Layers {
  std::vector<at::Tensor> inputs;
  std::vector<RunningMoments> running;
};

Layers two_layers() {
  return {{at::randn({4, 3, 5, 5}) * 2 + 1, at::randn({4, 7, 2, 2}) - 1},
          {{at::randn({3}), at::rand({3})}, {at::randn({7}), at::rand({7})}}};
}

TEST(BatchNormStatistics, IsTheMeanOverLayersOfBothErrors) {
  const auto [inputs, running] = two_layers();
  double expected = 0;
  for (std::size_t l = 0; l < inputs.size(); ++l) {
    const auto rows = inputs[l].to(at::kDouble).transpose(0, 1).flatten(1);
    const auto mean = rows.mean(1);
    const auto variance = rows.square().mean(1) - mean.square();
    expected += ((mean - running[l].mean).square().mean() +
                 (variance - running[l].variance).square().mean())
                    .item<double>() /
                2;
  }
  EXPECT_NEAR(batch_norm_statistics(batch_moments(inputs), running).item<double>(), expected,
              1e-5 * expected);
}

TEST(BatchNormStatistics, IsZeroWhereTheMomentsAgree) {
  const auto x = at::randn({8, 3, 4, 4});
  const auto rows = x.transpose(0, 1).flatten(1);
  const RunningMoments same{rows.mean(1), rows.var(1, /*unbiased=*/false)};
  EXPECT_NEAR(batch_norm_statistics(batch_moments({x}), {same}).item<double>(), 0, 1e-10);
}

TEST(BatchNormStatistics, GradientIsTheSlope) {
  const auto [inputs, running] = two_layers();
  expect_gradient(inputs[0], [&, &in = inputs, &run = running](const at::Tensor& x) {
    return batch_norm_statistics(batch_moments({x, in[1]}), run);
  });
}

// Images of two values, so that moments are plain: channel 0 has mean 3 and variance 1, channel 1
// mean 0 and variance 4.
TEST(NormalisedBatchNormStatistics, CountsInDeviationsOfEachChannel) {
  const auto x = at::tensor({2.0f, -2.0f, 4.0f, 2.0f}).view({2, 2, 1, 1});
  const RunningMoments running{at::tensor({1.0f, 0.0f}), at::tensor({3.0f, 0.0f}), /*eps=*/1};
  // (3 - 1)^2 / 4 + (sqrt(2 / 4) - 1)^2 and 0 + (sqrt(5) - 1)^2
  const double expected =
      (1 + std::pow(std::sqrt(0.5) - 1, 2) + std::pow(std::sqrt(5.0) - 1, 2)) / 2;
  EXPECT_NEAR(normalised_batch_norm_statistics(batch_moments({x}), {running}).item<double>(),
              expected, 1e-5);
  // Two layers: their mean.
  const RunningMoments same{at::tensor({3.0f, 0.0f}), at::tensor({1.0f, 4.0f})};
  EXPECT_NEAR(
      normalised_batch_norm_statistics(batch_moments({x, x}), {running, same}).item<double>(),
      expected / 2, 1e-5);
}

TEST(NormalisedBatchNormStatistics, DoesNotDependOnTheRangeOfAChannel) {
  auto [inputs, running] = two_layers();
  for (auto& layer : running) layer.eps = 0;
  const double before =
      normalised_batch_norm_statistics(batch_moments(inputs), running).item<double>();
  inputs[0].select(1, 1).mul_(100);
  running[0].mean[1].mul_(100);
  running[0].variance[1].mul_(100 * 100);
  EXPECT_NEAR(normalised_batch_norm_statistics(batch_moments(inputs), running).item<double>(),
              before, 1e-4 * before);
}

TEST(NormalisedBatchNormStatistics, GradientIsTheSlope) {
  const auto [inputs, running] = two_layers();
  expect_gradient(inputs[0], [&, &in = inputs, &run = running](const at::Tensor& x) {
    return normalised_batch_norm_statistics(batch_moments({x, in[1]}), run);
  });
}

// Two images of mean 3 and variance 1, one of mean 0 and variance 4: all their values together.
TEST(PooledMoments, AreThoseOfAllImagesTogether) {
  const auto a = at::randn({3, 5, 4, 4}) * 2 + 1, b = at::randn({2, 5, 4, 4}) - 3;
  const auto pooled = pooled_moments(batch_moments({a}), 3, batch_moments({b}), 2);
  const auto all = at::cat({a, b}).to(at::kDouble).transpose(0, 1).flatten(1);
  EXPECT_LT((pooled[0].mean - all.mean(1)).abs().max().item<double>(), 1e-5);
  EXPECT_LT((pooled[0].variance - all.var(1, /*unbiased=*/false)).abs().max().item<double>(), 1e-5);
  EXPECT_THROW(pooled_moments(batch_moments({a}), 3, {}, 2), Error);
}

TEST(BatchNormDeviations, ComparesMeansAndDeviations) {
  const auto x = at::tensor({2.0f, -2.0f, 4.0f, 2.0f}).view({2, 2, 1, 1});  // variances 1 and 4
  const RunningMoments running{at::tensor({1.0f, 0.0f}), at::tensor({9.0f, 1.0f}), /*eps=*/0};
  // (3 - 1)^2 + (1 - 3)^2 and 0 + (2 - 1)^2
  EXPECT_NEAR(batch_norm_deviations(batch_moments({x}), {running}).item<double>(), 4.5, 1e-5);
}

TEST(BatchNormDeviations, GradientIsTheSlope) {
  const auto [inputs, running] = two_layers();
  expect_gradient(inputs[0], [&, &in = inputs, &run = running](const at::Tensor& x) {
    return batch_norm_deviations(batch_moments({x, in[1]}), run);
  });
}

TEST(LayeredWeights, CountShallowAndDeepLayers) {
  EXPECT_EQ(layered_weights(4, 0.2, 1.1), (std::vector<double>{0.2, 0.2, 1.1, 1.1}));
  EXPECT_EQ(layered_weights(3, 0.2, 1.1), (std::vector<double>{0.2, 1.1, 1.1}));
  const auto [inputs, running] = two_layers();
  const auto all = batch_moments(inputs);
  for (const auto loss :
       {batch_norm_statistics, batch_norm_deviations, normalised_batch_norm_statistics}) {
    const double first = loss({all[0]}, {running[0]}, {}).item<double>(),
                 second = loss({all[1]}, {running[1]}, {}).item<double>();
    EXPECT_NEAR(loss(all, running, {0.2, 1.1}).item<double>(), (0.2 * first + 1.1 * second) / 2,
                1e-4 * (first + second));
    EXPECT_TRUE(loss(all, running, {1, 1}).equal(loss(all, running, {})));
    EXPECT_THROW(loss(all, running, {1}), Error);
  }
}

TEST(BatchNormStatistics, RefusesUnpairedLayers) {
  const auto [inputs, running] = two_layers();
  EXPECT_THROW(batch_norm_statistics(batch_moments(inputs), {running[0]}), Error);
  EXPECT_THROW(batch_norm_statistics({}, {}), Error);
}

}  // namespace
}  // namespace zsq::losses
