// SPDX-License-Identifier: Apache-2.0
#include "quant/calibration/ranges.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>

#include "quant/calibration/entropy.h"
#include "quant/calibration/registry.h"
#include "tests/support/network_builder.h"

namespace zsq::quant {
namespace {

ActivationOptions rule(ActivationRange range) {
  ActivationOptions options;
  options.range = range;
  return options;
}

std::pair<double, double> observe(const ActivationOptions& options, const QuantizerSpec& spec,
                                  const std::vector<at::Tensor>& batches) {
  const auto observer = range_observer(options, spec);
  for (const auto& batch : batches) observer->observe(batch);
  return observer->range();
}

// Mean squared error of fake-quantization, in plain double arithmetic.
double quantization_error(const at::Tensor& x, double lo, double hi, const QuantizerSpec& spec) {
  lo = std::min(lo, 0.0);
  hi = std::max(hi, 0.0);
  double scale = (hi - lo) / static_cast<double>(spec.qmax - spec.qmin), zero_point = 0;
  if (spec.symmetric) {
    scale = std::max(lo / static_cast<double>(spec.qmin), hi / static_cast<double>(spec.qmax));
  } else {
    zero_point = static_cast<double>(spec.qmin) - std::nearbyint(lo / scale);
  }
  const auto values = x.to(at::kDouble).reshape(-1).contiguous();
  double sum = 0;
  for (std::int64_t i = 0; i < values.numel(); ++i) {
    const double v = values.data_ptr<double>()[i];
    const double q = std::clamp(std::nearbyint(v / scale) + zero_point,
                                static_cast<double>(spec.qmin), static_cast<double>(spec.qmax));
    sum += std::pow((q - zero_point) * scale - v, 2);
  }
  return sum / static_cast<double>(values.numel());
}

TEST(WeightGrid, MinMaxCoversEachChannel) {
  const auto w = at::tensor({-8.0, 7.0, 0.0, 30.0}, at::kFloat).reshape({2, 1, 1, 2});
  const auto spec = weight_spec(4, false, Mode::deploy);
  const auto grid = weight_grid(w, spec, true, WeightRange::min_max);
  EXPECT_EQ(grid.scale.dim(), 1);
  EXPECT_FLOAT_EQ(grid.scale[0].item<float>(), 1);
  EXPECT_FLOAT_EQ(grid.zero_point[0].item<float>(), 0);
  EXPECT_FLOAT_EQ(grid.scale[1].item<float>(), 2);
  EXPECT_FLOAT_EQ(grid.zero_point[1].item<float>(), -8);
  const auto whole = weight_grid(w, spec, false, WeightRange::min_max);
  EXPECT_EQ(whole.scale.dim(), 0);
  EXPECT_FLOAT_EQ(whole.scale.item<float>(), 38.0f / 15);
}

// Against every candidate in turn, per channel, in double. n = 75 leaves a tail after whole
// vectors.
TEST(WeightGrid, MseIsTheBestOfAllRatios) {
  const auto w = test::normal({6, 3, 5, 5}, 7).pow(3);  // heavy tails: clipping pays
  for (const bool symmetric : {false, true}) {
    const auto spec = weight_spec(3, symmetric, Mode::deploy);
    const auto grid = weight_grid(w, spec, true, WeightRange::mse);
    int clipped = 0;
    for (std::int64_t c = 0; c < w.size(0); ++c) {
      const double lo = w[c].min().item<float>(), hi = w[c].max().item<float>();
      double best = INFINITY, best_ratio = 0;
      for (int percent = 100; percent >= 30; --percent) {
        const double error = quantization_error(w[c], lo * percent / 100, hi * percent / 100, spec);
        if (error < best) {
          best = error;
          best_ratio = percent / 100.0;
        }
      }
      const double whole = symmetric ? std::max(-lo / 4, hi / 3) : (hi - lo) / 7;
      EXPECT_NEAR(grid.scale[c].item<float>(), best_ratio * whole, 1e-5 * whole) << c;
      clipped += best_ratio < 1;
    }
    EXPECT_GT(clipped, 3);
  }
}

TEST(WeightGrid, MsePerTensorAndLargeRows) {
  const auto w = test::normal({40, 20, 3, 3}, 8);  // more than one block of the sum
  const auto spec = weight_spec(4, false, Mode::deploy);
  const auto grid = weight_grid(w, spec, false, WeightRange::mse);
  const double lo = w.min().item<float>(), hi = w.max().item<float>();
  const double ratio = grid.scale.item<float>() * 15 / (hi - lo);
  const double chosen = quantization_error(w, lo * ratio, hi * ratio, spec);
  for (const double other : {ratio - 0.01, ratio + 0.01, 1.0})
    EXPECT_LE(chosen, quantization_error(w, lo * other, hi * other, spec)) << other;
}

TEST(WeightGrid, AllZeroChannelHasAnOrdinaryScale) {
  auto w = test::normal({2, 8}, 9);
  w[1].zero_();
  for (const auto range : {WeightRange::min_max, WeightRange::mse}) {
    const auto grid = weight_grid(w, weight_spec(4, false, Mode::deploy), true, range);
    EXPECT_FLOAT_EQ(grid.scale[1].item<float>(), 1);
  }
}

// decay 0.5, maxima 4 then 8: m = 2, then 5; divided by 1/2, then by 3/4.
TEST(RangeObserver, MovingAverageIsUnbiasedFromTheFirstBatch) {
  auto options = rule(ActivationRange::ema);
  options.ema_decay = 0.5;
  const auto spec = activation_spec(4, Mode::paper);
  const auto observer = range_observer(options, spec);
  observer->observe(at::tensor({-2.0, 4.0}, at::kFloat));
  EXPECT_DOUBLE_EQ(observer->range().first, -2);
  EXPECT_DOUBLE_EQ(observer->range().second, 4);
  observer->observe(at::tensor({0.0, 8.0}, at::kFloat));
  EXPECT_NEAR(observer->range().first, -0.5 / 0.75, 1e-12);
  EXPECT_NEAR(observer->range().second, 5 / 0.75, 1e-12);
  const auto constant = at::full({3}, 1.0f);
  const auto steady = observe(options, spec, std::vector<at::Tensor>(40, constant));
  EXPECT_NEAR(steady.second, 1, 1e-12);
}

TEST(RangeObserver, MinMaxOfAllBatches) {
  const auto range =
      observe(rule(ActivationRange::min_max), activation_spec(4, Mode::deploy),
              {at::tensor({-1.0, 2.0}), at::tensor({0.5, 7.0}), at::tensor({-3.0, 1.0})});
  EXPECT_EQ(range, (std::pair<double, double>{-3, 7}));
}

// Batches whose range grows on both sides, so the histogram must widen; a constant batch first.
std::vector<at::Tensor> growing_batches() {
  std::vector<at::Tensor> batches{at::full({100}, 0.25f)};
  for (int i = 0; i < 5; ++i)
    batches.push_back(test::normal({40000}, 20 + i, 0.1f * std::pow(3.0f, i)).add(0.3 * i));
  return batches;
}

TEST(RangeObserver, PercentileOfStoredSamples) {
  auto options = rule(ActivationRange::percentile);
  const auto spec = activation_spec(8, Mode::deploy);
  const auto batches = growing_batches();
  const auto sorted = std::get<0>(at::cat(batches).sort());
  const auto at_share = [](const at::Tensor& s, double share) {
    return s[static_cast<std::int64_t>(share * static_cast<double>(s.numel()))].item<double>();
  };
  const double bin = (sorted.max().item<double>() - sorted.min().item<double>()) / 2048;
  std::pair<double, double> range;
  for (const double percentile : {99.0, 50.0}) {
    options.percentile = percentile;
    range = observe(options, spec, batches);
    EXPECT_NEAR(range.first, at_share(sorted, 0.5 - percentile / 200), bin);
    EXPECT_NEAR(range.second, at_share(sorted, 0.5 + percentile / 200), bin);
  }

  // Where nothing is negative, all that is outside lies above.
  std::vector<at::Tensor> positive;
  for (const auto& batch : batches) positive.push_back(batch.relu());
  options.percentile = 99;
  range = observe(options, spec, positive);
  EXPECT_EQ(range.first, 0);
  EXPECT_NEAR(range.second, at_share(std::get<0>(at::cat(positive).sort()), 0.99), bin);

  options.percentile = 100;
  range = observe(options, spec, batches);
  EXPECT_NEAR(range.first, sorted.min().item<double>(), 1e-9);
  EXPECT_NEAR(range.second, sorted.max().item<double>(), 1e-9);
}

// The chosen range is as good on the samples themselves as the best of all that were searched.
TEST(RangeObserver, MseOfStoredSamples) {
  const auto spec = activation_spec(4, Mode::deploy);
  const auto signed_batches = growing_batches();
  std::vector<at::Tensor> positive;
  for (const auto& batch : signed_batches) positive.push_back(batch.relu());
  for (const auto& batches : {positive, signed_batches}) {
    const auto all = at::cat(batches);
    const auto [lo, hi] = observe(rule(ActivationRange::mse), spec, batches);
    const double chosen = quantization_error(all, lo, hi, spec);
    const double min = all.min().item<float>(), max = all.max().item<float>();
    for (int percent = 100; percent > 0; percent -= 3)
      EXPECT_LE(chosen,
                1.002 * quantization_error(all, min * percent / 100, max * percent / 100, spec));
    EXPECT_LT(chosen, 0.8 * quantization_error(all, min, max, spec));
    EXPECT_EQ(lo == 0, min == 0);
  }
}

// A short negative tail (HardSwish): the two ends are not clipped alike.
TEST(RangeObserver, MseClipsEachEndByItself) {
  const auto x =
      at::cat({test::normal({20000}, 30).abs(), at::full({2000}, -0.375f), at::full({1}, 12.0f)});
  const auto [lo, hi] = observe(rule(ActivationRange::mse), activation_spec(4, Mode::deploy), {x});
  EXPECT_LT(hi, 6);
  EXPECT_LT(lo, -0.2);
}

// Values that lie on levels lose nothing, and what is rare is cut off.
TEST(RangeObserver, EntropyOfLevelsAndOfAnOutlier) {
  const auto levels = entropy_observer({}, activation_spec(4, Mode::deploy));
  levels->observe(at::arange(16, at::kFloat).repeat({50}));
  EXPECT_EQ(levels->range(), (std::pair{0.0, 15.0}));
  const auto rare = entropy_observer({}, activation_spec(4, Mode::deploy));
  rare->observe(at::cat({test::normal({20000}, 1).abs(), at::full({1}, 60)}));
  EXPECT_LT(rare->range().second, 6);
  EXPECT_GT(rare->range().second, 1);
}

TEST(RangeObserver, NonFiniteValuesShow) {
  const auto spec = activation_spec(4, Mode::deploy);
  for (const auto range : {ActivationRange::ema, ActivationRange::min_max,
                           ActivationRange::percentile, ActivationRange::mse}) {
    for (const float bad : {NAN, INFINITY}) {
      const auto [lo, hi] = observe(rule(range), spec,
                                    {at::full({4}, 1.0f), at::full({4}, bad), at::full({4}, 1.0f)});
      EXPECT_FALSE(std::isfinite(lo) && std::isfinite(hi)) << enum_name(range) << " " << bad;
    }
  }
}

}  // namespace
}  // namespace zsq::quant
