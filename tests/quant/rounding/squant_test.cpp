// SPDX-License-Identifier: Apache-2.0
// SQuant against enumeration of all flips.
#include "quant/rounding/squant.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "models/execute.h"
#include "quant/calibration/ranges.h"
#include "tests/support/network_builder.h"
#include "tests/support/quantized.h"

namespace zsq::quant::squant_test {
namespace {

using cuda_kernels::Grid;

const QuantizerSpec kSpec = weight_spec(4, false, Mode::deploy);

Grid unit_grid(std::int64_t channels) {
  return {at::tensor(std::vector<float>(channels, 1)), at::tensor(std::vector<float>(channels, 0))};
}

std::vector<double> values(const at::Tensor& t) {
  const auto d = t.to(at::kDouble).contiguous();
  return {d.data_ptr<double>(), d.data_ptr<double>() + d.numel()};
}

// Errors of the chosen codes in steps, in memory order.
std::vector<double> errors(const at::Tensor& weight, const Grid& grid, bool keep_range = false,
                           const QuantizerSpec& spec = kSpec) {
  const auto chosen = squant(weight, grid, spec, keep_range);
  const auto codes =
      cuda_kernels::quantize(chosen, grid.scale, grid.zero_point, spec.qmin, spec.qmax);
  std::vector<std::int64_t> shape(weight.dim(), 1);
  shape[0] = -1;
  return values(codes.to(at::kDouble)
                    .sub(grid.zero_point.to(at::kDouble).view(shape))
                    .sub(weight.div(grid.scale.view(shape)).to(at::kDouble)));
}

double sum(const std::vector<double>& e) { return std::accumulate(e.begin(), e.end(), 0.0); }
double squares(const std::vector<double>& e) {
  return std::inner_product(e.begin(), e.end(), e.begin(), 0.0);
}

// Calls f with the errors of all 2^n choices of the two neighbours of each u.
void for_each_choice(const std::vector<double>& u,
                     const std::function<void(const std::vector<double>&)>& f) {
  std::vector<double> e(u.size());
  for (unsigned bits = 0; bits < (1u << u.size()); ++bits) {
    for (std::size_t i = 0; i < u.size(); ++i)
      e[i] = ((bits >> i) & 1 ? std::ceil(u[i]) : std::floor(u[i])) - u[i];
    f(e);
  }
}

std::vector<double> part(const std::vector<double>& all, std::size_t begin, std::size_t n) {
  return {all.begin() + begin, all.begin() + begin + n};
}

// One group of weights whose sum must lie within 1/2: the smallest sum of squares there is.
double best_squares(const std::vector<double>& u) {
  double best = INFINITY;
  for_each_choice(u, [&](const std::vector<double>& e) {
    if (std::abs(sum(e)) <= 0.5 + 1e-6) best = std::min(best, squares(e));
  });
  return best;
}

TEST(Squant, KernelsOfADepthwiseLayerReachTheOptimum) {
  const auto w = test::normal({200, 1, 3, 3}, 1, 2).clamp(-7, 6);
  const auto e = errors(w, unit_grid(200));
  const auto u = values(w);
  int flipped = 0;
  for (std::size_t c = 0; c < 200; ++c) {
    const auto kernel = part(e, 9 * c, 9);
    EXPECT_LE(std::abs(sum(kernel)), 0.5 + 1e-6);
    EXPECT_NEAR(squares(kernel), best_squares(part(u, 9 * c, 9)), 1e-5);
    for (const double x : kernel) {
      EXPECT_LT(std::abs(x), 1);
      flipped += std::abs(x) > 0.5;
    }
  }
  EXPECT_GT(flipped, 50);
}

// 1x1 and Linear: a channel is one group of single weights.
TEST(Squant, ChannelsOfPointwiseAndLinearLayersReachTheOptimum) {
  for (const bool linear : {false, true}) {
    auto w = test::normal({200, 11}, 2, 2).clamp(-7, 6);
    if (!linear) w = w.view({200, 11, 1, 1});
    const auto e = errors(w, unit_grid(200));
    for (std::size_t c = 0; c < 200; ++c) {
      const auto channel = part(e, 11 * c, 11);
      EXPECT_LE(std::abs(sum(channel)), 0.5 + 1e-6);
      EXPECT_NEAR(squares(channel), best_squares(part(values(w), 11 * c, 11)), 1e-5);
    }
  }
}

// Five kernels of three weights: the stages one after the other. K leaves each kernel the sum
// nearest to 0; C may move a kernel by one step; then each kernel has the smallest squares that
// its sum allows.
TEST(Squant, ChannelsOfSeveralKernelsReachTheOptimumOfBothStages) {
  constexpr std::size_t kChannels = 100, kKernels = 5, kSize = 3;
  const auto w = test::normal({kChannels, kKernels, 1, kSize}, 3, 2).clamp(-7, 6);
  const auto e = errors(w, unit_grid(kChannels));
  const auto u = values(w);
  int moved = 0;
  for (std::size_t c = 0; c < kChannels; ++c) {
    std::vector<double> after_k, result;
    for (std::size_t k = 0; k < kKernels; ++k) {
      const std::size_t begin = (c * kKernels + k) * kSize;
      const auto kernel_u = part(u, begin, kSize), kernel_e = part(e, begin, kSize);
      double nearest = INFINITY, least = INFINITY;
      for_each_choice(kernel_u, [&](const std::vector<double>& choice) {
        if (std::abs(sum(choice)) < std::abs(nearest)) nearest = sum(choice);
        if (std::abs(sum(choice) - sum(kernel_e)) < 1e-4) least = std::min(least, squares(choice));
      });
      EXPECT_NEAR(squares(kernel_e), least, 1e-5);
      EXPECT_LE(std::abs(sum(kernel_e)), 1 + 1e-6);
      after_k.push_back(nearest);
      result.push_back(sum(kernel_e));
      moved += std::abs(nearest - sum(kernel_e)) > 0.5;
    }
    EXPECT_LE(std::abs(sum(result)), 0.5 + 1e-5);
    double least = INFINITY;  // over all ways to move kernels by -1, 0 or 1
    for (int way = 0; way < 243; ++way) {
      auto sums = after_k;
      for (int k = 0, rest = way; k < 5; ++k, rest /= 3) sums[k] += rest % 3 - 1;
      if (std::abs(sum(sums)) <= 0.5 + 1e-5) least = std::min(least, squares(sums));
    }
    EXPECT_NEAR(squares(result), least, 1e-4);
  }
  EXPECT_GT(moved, 20);
}

// Scales, zero points and threads: a large layer keeps the promises of each channel.
TEST(Squant, RealGrids) {
  const auto w = test::normal({64, 48, 3, 3}, 4);
  for (const bool symmetric : {false, true}) {
    const auto spec = weight_spec(4, symmetric, Mode::deploy);
    const auto grid = weight_grid(w, spec, true, WeightRange::min_max);
    const auto e = errors(w, grid, false, spec);
    for (std::size_t c = 0; c < 64; ++c) {
      EXPECT_LE(std::abs(sum(part(e, c * 432, 432))), 0.5 + 1e-3);
      for (std::size_t k = 0; k < 48; ++k)
        EXPECT_LE(std::abs(sum(part(e, c * 432 + k * 9, 9))), 1 + 1e-3);
    }
  }
}

std::vector<double> codes_of(const std::vector<float>& row) {
  const auto w = at::tensor(row).view({1, 1, 1, -1});
  return values(cuda_kernels::quantize(squant(w, unit_grid(1), kSpec, false), at::tensor(1.0f),
                                       at::tensor(0.0f), -8, 7));
}

TEST(Squant, Ties) {
  using Codes = std::vector<double>;
  // A sum of exactly 1/2 stays.
  EXPECT_EQ(codes_of({1.75f, 2.75f}), (Codes{2, 3}));
  // Equal errors: the first flips. Sum 0.75 -> -0.25.
  EXPECT_EQ(codes_of({1.75f, 2.75f, 3.75f}), (Codes{1, 3, 4}));
  // Halves round to even, 2.5 up to nothing and 3.5 up to 4: errors -0.5, 0.5.
  EXPECT_EQ(codes_of({2.5f, 3.5f}), (Codes{2, 4}));
  // Errors -0.5 three times: one flip up, to 3, brings the sum to -0.5.
  EXPECT_EQ(codes_of({2.5f, 2.5f, 2.5f}), (Codes{3, 2, 2}));
  // A weight on the grid has no other neighbour.
  EXPECT_EQ(codes_of({1.0f, 2.0f, 0.0f}), (Codes{1, 2, 0}));
}

TEST(Squant, CodesStayInRange) {
  // 7.4 lies at the end: 8 is no code. The sum -0.4 - 0.4 - 0.4 - 0.3 can only be helped by the
  // last.
  EXPECT_EQ(codes_of({7.4f, 7.4f, 7.4f, 6.3f}), (std::vector<double>{7, 7, 7, 7}));
  // Outside the grid: the error of -2.6 counts, and all others give way.
  EXPECT_EQ(codes_of({9.6f, 1.3f, 1.2f, 1.4f, 1.1f}), (std::vector<double>{7, 2, 2, 2, 2}));
  // Nothing can give way.
  EXPECT_EQ(codes_of({-11.0f, -10.0f}), (std::vector<double>{-8, -8}));
}

TEST(Squant, OnlyFlippedWeightsMoveAndMirror) {
  const auto w = at::tensor({1.7f, 2.7f, 3.75f}).view({1, 1, 1, 3});
  const auto chosen = squant(w, unit_grid(1), kSpec, false).view(-1);  // errors 0.3, 0.3, 0.25
  EXPECT_FLOAT_EQ(chosen[0].item<float>(), 1.3f);
  EXPECT_EQ(chosen[1].item<float>(), 2.7f);
  EXPECT_EQ(chosen[2].item<float>(), 3.75f);
  const auto twice = test::normal({8, 6, 3, 3}, 5);
  const auto grid = weight_grid(twice, kSpec, true, WeightRange::min_max);
  const auto once = squant(twice, grid, kSpec, false);
  EXPECT_GT(once.ne(twice).sum().item<int>(), 10);
  EXPECT_LT(once.sub(twice).abs().div(grid.scale.view({8, 1, 1, 1})).max().item<float>(), 1);
}

// A grid computed again from the returned weights is the same, per channel and per tensor.
TEST(Squant, KeepsTheRangeItIsAskedToKeep) {
  const auto w = test::normal({32, 16, 3, 3}, 6);
  for (const bool per_channel : {true, false}) {
    const auto grid = weight_grid(w, kSpec, per_channel, WeightRange::min_max);
    const auto chosen = squant(w, grid, kSpec, true);
    const auto again = weight_grid(chosen, kSpec, per_channel, WeightRange::min_max);
    EXPECT_TRUE(at::equal(grid.scale, again.scale));
    EXPECT_TRUE(at::equal(grid.zero_point, again.zero_point));
    EXPECT_GT(chosen.ne(w).sum().item<int>(), 100);
  }
  // Both ends are the largest errors, and stay.
  const auto ends = at::tensor({-7.6f, 6.6f, 1.7f, 1.7f, 1.7f}).view({1, 1, 1, 5});
  const auto kept = squant(ends, unit_grid(1), kSpec, true).view(-1);
  EXPECT_EQ(kept[0].item<float>(), -7.6f);
  EXPECT_EQ(kept[1].item<float>(), 6.6f);
}

TEST(Squant, LeavesWhatIsNotFiniteAlone) {
  const auto w = at::tensor({NAN, 1.2f, 1.3f, 1.4f}).view({1, 1, 2, 2});
  const auto grid = weight_grid(w, kSpec, true, WeightRange::min_max);
  EXPECT_EQ(squant(w, grid, kSpec, false).ne(w).sum().item<int>(), 1);  // NaN itself
}

// The option, and what the student then executes.
TEST(Squant, StudentStartsFromIt) {
  const auto teacher = test::residual_network();
  for (const Mode mode : {Mode::deploy, Mode::paper}) {
    QuantOptions options;
    options.mode = mode;
    options.weights.range_every_step = mode == Mode::paper;
    auto nearest = test::quantized(teacher, options);
    options.weights.rounding = WeightRounding::squant;
    auto student = test::quantized(teacher, options);
    for (const auto& site : weight_sites(student)) {
      const auto& weight = student.parameters.at(site.parameter);
      const auto before = site.op->grid(nearest.parameters.at(site.parameter), nearest.parameters);
      const auto grid = site.op->grid(weight, student.parameters);
      EXPECT_TRUE(at::equal(grid.scale, before.scale)) << site.parameter;
      EXPECT_TRUE(at::equal(grid.zero_point, before.zero_point)) << site.parameter;
      EXPECT_FALSE(at::equal(weight, nearest.parameters.at(site.parameter))) << site.parameter;
    }
    const auto x = test::normal({2, 3, 12, 12}, 7);
    EXPECT_FALSE(at::equal(models::execute(student.graph, student.parameters, x),
                           models::execute(nearest.graph, nearest.parameters, x)));
  }
}

}  // namespace
}  // namespace zsq::quant::squant_test
