// SPDX-License-Identifier: Apache-2.0
#include "quant/data_free/distribution.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "quant/calibration/ranges.h"
#include "tests/support/network_builder.h"

namespace zsq::quant {
namespace {

at::Tensor scalar(double value) { return at::full({1, 1}, value); }
at::Tensor rows(double mean, double deviation) {
  return distribution::normal(scalar(mean), scalar(deviation * deviation));
}
double mean(const at::Tensor& x) { return distribution::mean(x).item<double>(); }
double deviation(const at::Tensor& x) {
  return std::sqrt(distribution::variance(x).item<double>());
}

// Mean squared error of a grid with levels at whole multiples of the step, from `lowest` times the
// step on, over f(N(0, 1)): a sum in double.
template <class F>
double error_of(const F& f, double step, int lowest, int levels) {
  double error = 0, total = 0;
  for (double z = -8; z <= 8; z += 1e-3) {
    const double x = f(z), weight = std::exp(-z * z / 2);
    const double level = std::clamp<double>(std::nearbyint(x / step), lowest, lowest + levels - 1);
    error += weight * (level * step - x) * (level * step - x);
    total += weight;
  }
  return error / total;
}

template <class F>
std::pair<double, double> least_error_step(const F& f, int lowest, int levels) {
  std::pair best{1e9, 0.0};
  for (double top = 0.5; top < 6; top += 0.02) {
    const double step = top / (lowest + levels - 1);
    best = std::min(best, {error_of(f, step, lowest, levels), step});
  }
  return best;
}

// step and zero point of the range that the search finds
std::pair<double, double> found_grid(const at::Tensor& x, int bits) {
  Histogram histogram;
  const auto [values, probabilities] = distribution::interpolated(x);
  histogram.add(values, probabilities.unsqueeze(1));
  const auto spec = activation_spec(bits, Mode::deploy);
  const auto [lo, hi] = least_error_range(histogram, spec, 2);
  const double step = (std::max(hi, 0.0) - std::min(lo, 0.0)) / static_cast<double>(spec.qmax);
  return {step, std::nearbyint(-std::min(lo, 0.0) / step)};
}

// Of a normal variable the best uniform quantizers are known (Max, 1960): half the width of the
// outermost levels is 2.05, 2.51 and 3.92 deviations at 3, 4 and 8 bits.
TEST(Distribution, RangeOfANormalVariableDependsOnTheBits) {
  for (const auto& [bits, half] : {std::pair{3, 2.05}, {4, 2.51}, {8, 3.92}}) {
    const auto [step, zero] = found_grid(rows(0, 1), bits);
    const int levels = 1 << bits;
    EXPECT_NEAR(step * (levels - 1) / 2, half, 0.08 * half) << bits;
    const auto same = [](double z) { return z; };
    const double best = least_error_step(same, -levels / 2, levels).first;
    EXPECT_LT(error_of(same, step, -static_cast<int>(zero), levels), 1.02 * best) << bits;
  }
}

TEST(Distribution, RangeBehindARelu) {
  const auto relu = [](double z) { return std::max(0.0, z - 0.5); };
  const auto x = rows(-0.5, 1).clamp_min(0);
  for (const int bits : {2, 3, 4, 6, 8}) {
    const auto [step, zero] = found_grid(x, bits);
    EXPECT_EQ(zero, 0);
    const auto [best, best_step] = least_error_step(relu, 0, 1 << bits);
    EXPECT_LT(error_of(relu, step, 0, 1 << bits), 1.02 * best) << bits << " " << best_step;
  }
}

// The largest of four: mean 1.0294, variance 0.4917 (tables of order statistics).
TEST(Distribution, LargestOfSeveral) {
  const auto x = distribution::largest_of(rows(1, 2), 4);
  EXPECT_NEAR(mean(x), 1 + 2 * 1.0294, 0.02);
  EXPECT_NEAR(deviation(x), 2 * std::sqrt(0.4917), 0.01);
}

// Of values that are normal the mean is normal, with the variance r + (1 - r) / n.
TEST(Distribution, AverageOfNormalVariables) {
  const auto x = distribution::average_of(rows(1, 2), 4, 0.3);
  EXPECT_NEAR(mean(x), 1, 1e-4);
  EXPECT_NEAR(deviation(x), 2 * std::sqrt(0.3 + 0.7 / 4), 0.02);
  EXPECT_NEAR(x[distribution::kNodes / 2 + 8].item<double>(), 1 + 2 * deviation(x), 0.02);
}

// Nine values of SiLU with correlation 0.35: mean, deviation and the thousandth of their means,
// as 300,000 draws have them. Many a mean is near the least value of the function.
TEST(Distribution, AverageOfValuesWithALeastOne) {
  const auto silu = [](const at::Tensor& t) { return t * t.sigmoid(); };
  const auto generator = at::detail::createCPUGenerator(1);
  const auto c = at::randn({300000, 1}, generator), e = at::randn({300000, 9}, generator);
  const auto drawn = silu(c * std::sqrt(0.35) + e * std::sqrt(0.65) - 1).mean(1).to(at::kDouble);
  const auto x = distribution::average_of(silu(rows(-1, 1)), 9, 0.35);
  EXPECT_NEAR(mean(x), drawn.mean().item<double>(), 2e-3);
  EXPECT_NEAR(deviation(x), drawn.std().item<double>(), 0.02 * deviation(x));
  EXPECT_NEAR(x.min().item<double>(), drawn.quantile(1e-3).item<double>(), 0.035);
  EXPECT_GT(x.max().item<double>(), drawn.max().item<double>());
}

// A sum of two normal variables is one; each quantile tells.
TEST(Distribution, SumOfIndependentVariables) {
  const auto expected = rows(3, 5), x = distribution::sum(rows(1, 3), rows(2, 4));
  const auto inner = [](const at::Tensor& t) { return t.narrow(0, 10, distribution::kNodes - 20); };
  EXPECT_LT(inner(x).sub(inner(expected)).abs().max().item<double>(), 0.4);
  EXPECT_NEAR(mean(x), 3, 1e-3);
  EXPECT_NEAR(deviation(x), 5, 1e-2);
}

// A gate that does not vary scales.
TEST(Distribution, ProductWithAConstantGate) {
  const auto x = rows(1, 2).clamp_min(0), y = distribution::product(x, rows(0.25, 0));
  EXPECT_LT(y.sub(x.mul(0.25)).abs().max().item<double>(), 1e-3);
}

TEST(Distribution, WorksOnceOnWhatDoesNotVary) {
  const auto x = rows(0, 1).view({-1, 1, 1, 1}).expand({-1, 3, 1000, 1000});
  const auto y = distribution::sum(x, x);
  EXPECT_EQ(y.sizes(), x.sizes());
  EXPECT_EQ(y.stride(3), 0);
  EXPECT_EQ(distribution::distinct(y).size(1), 1);
}

}  // namespace
}  // namespace zsq::quant
