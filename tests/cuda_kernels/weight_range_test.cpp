// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/weight_range.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/round.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>

#include "cuda_kernels/fake_quant.h"
#include "tests/cuda_kernels/helpers.h"

namespace zsq::cuda_kernels {
namespace {

using namespace zsq::test;

TEST(ChannelMinMax, MatchesAten) {
  for (const std::int64_t columns : {1, 9, 63, 64, 65, 1000, 100000}) {
    const at::Tensor x = random({5, columns});
    const auto [lo, hi] = channel_min_max(x);
    EXPECT_TRUE(same_bits(lo, x.amin(1))) << columns;
    EXPECT_TRUE(same_bits(hi, x.amax(1))) << columns;
  }
}

TEST(ChannelMinMax, AnyMemoryOrder) {
  const at::Tensor x = random({6, 5, 4, 3});
  for (const at::Tensor& view :
       {x, x.contiguous(at::MemoryFormat::ChannelsLast), x.transpose(0, 3), x.slice(3, 0, 2)}) {
    const auto [lo, hi] = channel_min_max(view);
    EXPECT_TRUE(same_bits(lo, view.flatten(1).amin(1)));
    EXPECT_TRUE(same_bits(hi, view.flatten(1).amax(1)));
  }
}

TEST(ChannelMinMax, NanAndInfinityShow) {
  for (const std::int64_t at_index : {0, 70, 129}) {
    at::Tensor x = random({3, 130});
    x[0][at_index] = kNan;
    x[1][at_index] = kInf;
    const auto [lo, hi] = channel_min_max(x);
    EXPECT_TRUE(same_bits(lo, x.amin(1)));
    EXPECT_TRUE(same_bits(hi, x.amax(1)));
  }
}

TEST(ChannelMinMax, EmptyAndBadArguments) {
  EXPECT_EQ(channel_min_max(at::empty({0, 4})).first.numel(), 0);
  expect_error([] { channel_min_max(at::empty({4, 0})); }, "at least one element per row");
  expect_error([] { channel_min_max(at::scalar_tensor(1.0f)); }, "channel_min_max: x is Float[]");
  expect_error([] { channel_min_max(at::ones({2}, at::kInt)); }, "x is Int[2]");
}

TEST(GridFromRange, AsymmetricHandWorked) {
  // [-1, 2] on 0..15: scale 0.2, zero point 5. [1, 3] widens to [0, 3]; [-3, -1.5] to [-3, 0].
  const Grid grid = grid_from_range(values({-1, 1, -3}), values({2, 3, -1.5f}), 0, 15, false);
  EXPECT_TRUE(same_bits(grid.scale, values({3.0f / 15, 3.0f / 15, 3.0f / 15})));
  EXPECT_TRUE(same_bits(grid.zero_point, values({5, 0, 15})));
}

TEST(GridFromRange, SymmetricHandWorked) {
  // -8..7: |-4| / 8 against 7 / 7; an all-negative range does not count its upper end.
  const Grid grid = grid_from_range(values({-4, -16, -8}), values({7, 7, -7.9f}), -8, 7, true);
  EXPECT_TRUE(same_bits(grid.scale, values({1, 2, 1})));
  EXPECT_TRUE(same_bits(grid.zero_point, at::zeros({3})));
  EXPECT_TRUE(
      same_bits(grid_from_range(values({0}), values({51}), 0, 255, true).scale, values({0.2f})));
}

TEST(GridFromRange, MatchesTruth) {
  const at::Tensor lo = -at::rand({200}), hi = at::rand({200});
  const Grid grid = grid_from_range(lo, hi, -8, 7, false);
  // On the host: on a GPU libtorch multiplies by the rounded 1 / 15.
  const at::Tensor low = lo.cpu(), scale = (hi.cpu() - low) / 15;
  EXPECT_TRUE(same_bits(grid.scale.cpu(), scale));
  EXPECT_TRUE(same_bits(grid.zero_point.cpu(), (-8 - at::round(low / scale)).clamp(-8, 7)));
}

TEST(GridFromRange, TheRangeIsCoveredToHalfAStep) {
  const at::Tensor lo = random({300}) - 0.5, hi = lo + at::rand({300}) * 2;
  for (const bool symmetric : {false, true}) {
    const Grid grid = grid_from_range(lo, hi, -8, 7, symmetric);
    for (const at::Tensor& end : {lo, hi}) {
      const at::Tensor y = fake_quant(end, grid.scale, grid.zero_point, -8, 7, Surrogate::clipped);
      EXPECT_TRUE(((y - end).abs() <= grid.scale * 0.5001).all().item<bool>());
    }
  }
}

TEST(GridFromRange, ZeroWidthAndNonFinite) {
  for (const bool symmetric : {false, true}) {
    const at::Tensor lo = values({0, 0, 0, kNan}), hi = values({0, 1e-44f, kInf, 1});
    const Grid grid = grid_from_range(lo, hi, -8, 7, symmetric);
    const float zero = symmetric ? 0 : -8;
    EXPECT_TRUE(same_bits(grid.scale, values({1, 1, kNan, kNan})));
    EXPECT_TRUE(same_bits(grid.zero_point, values({zero, zero, kNan, kNan})));
  }
}

TEST(GridFromRange, EmptyAndBadArguments) {
  EXPECT_EQ(grid_from_range(at::empty({0}), at::empty({0}), 0, 1, false).scale.numel(), 0);
  EXPECT_EQ(
      grid_from_range(at::scalar_tensor(-1.0f), at::scalar_tensor(1.0f), -8, 7, false).scale.dim(),
      0);
  const at::Tensor one = at::ones({1});
  expect_error([&] { grid_from_range(one, at::ones({2}), 0, 1, false); },
               "grid_from_range: hi is Float[2] on cpu, expected Float[1] on cpu");
  expect_error([&] { grid_from_range(one, one, 1, 0, false); }, "[qmin, qmax] is [1, 0]");
  expect_error([&] { grid_from_range(one, one, 1, 3, true); }, "symmetric");
}

}  // namespace
}  // namespace zsq::cuda_kernels
