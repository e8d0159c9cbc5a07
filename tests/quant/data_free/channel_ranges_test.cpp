// SPDX-License-Identifier: Apache-2.0
#include "quant/data_free/channel_ranges.h"

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace zsq::quant {
namespace {

// Mean |error|^7 of min(max(0, N(mean, deviation^2)), 6) on the grid that ends at `range`.
double mean_error(double mean, double deviation, double range, int steps) {
  const double scale = range / steps;
  double sum = 0, total = 0;
  for (double z = -6; z <= 6; z += 0.004) {
    const double p = std::exp(-z * z / 2);
    const double x = std::clamp(mean + deviation * z, 0.0, 6.0);
    sum += p * std::pow(std::abs(std::min(std::nearbyint(x / scale), 1.0 * steps) * scale - x), 7);
    total += p;
  }
  return sum / total;
}

TEST(ChannelRanges, NoOtherRangeIsMuchBetter) {
  const std::vector<float> means{0, -1, 2, 5, 0.1F}, deviations{1, 1, 0.5, 3, 0.01F};
  for (const int bits : {3, 4, 8}) {
    const auto ranges = channel_ranges(at::tensor(means), at::tensor(deviations), 6, bits);
    for (int c = 0; c < 5; ++c) {
      const int steps = (1 << bits) - 1;
      const double own = mean_error(means[c], deviations[c], ranges[c].item<double>(), steps);
      double least = own;
      for (double range = 0.02; range <= 6; range += 0.02)
        least = std::min(least, mean_error(means[c], deviations[c], range, steps));
      // The search takes 64 ranges; the seventh power of a step between them is a factor of 1.2.
      EXPECT_LT(own, 1.3 * least) << bits << " bits, channel " << c;
    }
  }
}

// More bits and a wider distribution both make the range wider, and it never exceeds the bound.
TEST(ChannelRanges, GrowWithBitsAndDeviation) {
  const auto range = [](double mean, double deviation, std::int64_t bits) {
    return channel_ranges(at::tensor({static_cast<float>(mean)}),
                          at::tensor({static_cast<float>(deviation)}), 6, bits)
        .item<double>();
  };
  EXPECT_LT(range(0, 1, 3), range(0, 1, 4));
  EXPECT_LT(range(0, 1, 4), range(0, 1, 8));
  EXPECT_NEAR(range(0, 0.5, 4), range(0, 1, 4) / 2, 1e-5);
  EXPECT_NEAR(range(6, 3, 4), 6, 6.0 / 64);  // half of the values lie at the bound
  EXPECT_FLOAT_EQ(range(-50, 1, 4), 6);      // always 0
}

}  // namespace
}  // namespace zsq::quant
