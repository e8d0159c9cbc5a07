// SPDX-License-Identifier: Apache-2.0
// Codes against enumeration of all of them.
#include "quant/rounding/lattice.h"

#include <ATen/ops/eye.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/network_builder.h"

namespace zsq::quant {
namespace {

at::Tensor of_double(const at::Tensor& t) { return t.to(at::kDouble); }

// Of n values that go together.
at::Tensor correlated(std::int64_t n, std::uint64_t seed, std::int64_t samples = 40) {
  const auto x = of_double(
      test::normal({samples, n}, seed).add(test::normal({samples, 1}, seed + 1).mul(1.5)));
  return at::matmul(x.t(), x).div(static_cast<double>(samples));
}

CodeGrids grids(std::int64_t rows, std::int64_t codes, double scale, double lowest,
                double highest) {
  const auto all = [&](double v) { return at::full({rows, codes}, v, at::kDouble); };
  return {at::full({rows}, scale, at::kDouble), all(lowest), all(highest)};
}

double cost(const at::Tensor& matrix, const at::Tensor& codes, double scale, const at::Tensor& t) {
  const auto v = codes.mul(scale).sub(t);
  return at::matmul(at::matmul(v, matrix), v).item<double>();
}

// The least cost of `k` codes in lowest .. highest.
double brute_force(const at::Tensor& matrix, const at::Tensor& t, double scale, int lowest,
                   int highest) {
  const std::int64_t k = t.numel();
  std::vector<double> codes(k, lowest);
  double best = INFINITY;
  for (;;) {
    best = std::min(best, cost(matrix, at::tensor(codes, at::kDouble), scale, t));
    std::int64_t i = 0;
    while (i < k && codes[i] == highest) codes[i++] = lowest;
    if (i == k) return best;
    ++codes[i];
  }
}

TEST(CodeLattice, ShortRowsReachTheOptimum) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const auto matrix = correlated(5, seed);
    const auto t = of_double(test::normal({4, 5}, seed + 50));
    const auto found = CodeLattice(matrix).nearest(t, grids(4, 5, 0.6, -2, 2));
    for (std::int64_t row = 0; row < 4; ++row) {
      const double best = brute_force(matrix, t[row], 0.6, -2, 2);
      EXPECT_NEAR(cost(matrix, found.codes[row], 0.6, t[row]), best, 1e-9) << seed;
      EXPECT_NEAR(found.error[row].item<double>(), best, 1e-9);
    }
  }
}

TEST(CodeLattice, OnACorrelatedMetricItBeatsNearestRoundingByFar) {
  for (const std::int64_t n : {9, 25, 150}) {
    const auto matrix = correlated(n, 3, 4 * n);
    const auto t = of_double(test::normal({16, n}, 4));
    const auto found = CodeLattice(matrix).nearest(t, grids(16, n, 0.5, -8, 7));
    double nearest = 0, ours = 0;
    for (std::int64_t row = 0; row < 16; ++row) {
      nearest += cost(matrix, t[row].div(0.5).round().clamp(-8, 7), 0.5, t[row]);
      ours += cost(matrix, found.codes[row], 0.5, t[row]);
    }
    EXPECT_LT(ours, 0.7 * nearest) << n;
    EXPECT_NEAR(found.error.sum().item<double>(), ours, 1e-6 * ours);
    EXPECT_TRUE(found.codes.equal(found.codes.round()));
    EXPECT_LE(found.codes.max().item<double>(), 7);
    EXPECT_GE(found.codes.min().item<double>(), -8);
  }
}

// 150 codes pass through several blocks of the walk, and are no tree.
TEST(CodeLattice, NoSingleCodeCanBeBetter) {
  const auto matrix = correlated(150, 5, 400);
  const auto t = of_double(test::normal({3, 150}, 6));
  const auto found = CodeLattice(matrix).nearest(t, grids(3, 150, 0.7, -4, 3));
  for (std::int64_t row = 0; row < 3; ++row) {
    const double now = cost(matrix, found.codes[row], 0.7, t[row]);
    for (std::int64_t i = 0; i < 150; ++i)
      for (const double step : {-1.0, 1.0}) {
        auto other = found.codes[row].clone();
        other[i].add_(step);
        if (other[i].item<double>() < -4 || other[i].item<double>() > 3) continue;
        EXPECT_GE(cost(matrix, other, 0.7, t[row]), now - 1e-9);
      }
  }
  // What each code would like to be, held to the range, rounds to the code.
  EXPECT_TRUE(found.best.round().clamp(-4, 3).equal(found.codes));
}

TEST(CodeLattice, AnIdentityIsNearestRounding) {
  const auto t = of_double(test::normal({5, 40}, 7, 2));
  const auto found = CodeLattice(at::eye(40, at::TensorOptions().dtype(at::kDouble)))
                         .nearest(t, grids(5, 40, 0.5, -3, 3));
  EXPECT_TRUE(found.codes.equal(t.div(0.5).round().clamp(-3, 3)));
}

TEST(CodeLattice, Solves) {
  const auto matrix = correlated(12, 8);
  const auto rows = of_double(test::normal({3, 12}, 9));
  const auto back = at::matmul(CodeLattice(matrix).solve(rows), matrix);
  EXPECT_LT(back.sub(rows).abs().max().item<double>(), 1e-9);
}

}  // namespace
}  // namespace zsq::quant
