// SPDX-License-Identifier: Apache-2.0
#include "quant/choose_levels.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "quant/calibration/weight_grid.h"
#include "quant/rounding/round_to_levels.h"
#include "tests/support/network_builder.h"

namespace zsq::quant::choose_levels_test {
namespace {

double squared_error(const at::Tensor& a, const at::Tensor& b) {
  return a.sub(b).square().sum().item<double>();
}

at::Tensor values_of(const std::vector<float>& levels) { return at::tensor(levels); }

// Each row is made of one table's levels: that table, at that scale, loses nothing.
TEST(ChooseLevels, FindTheTableThatARowWasMadeOf) {
  const auto fp4 = values_of(fixed_levels(LevelTable::fp4, 4));
  const auto flint = values_of(fixed_levels(LevelTable::flint, 4));
  const auto rows = at::cat({fp4.mul(0.25 / 1.01), flint.mul(0.5 / 1.01)}).view({2, 15});
  const auto grids = choose_levels(rows, 4, {LevelTable::flint, LevelTable::fp4});
  EXPECT_TRUE(grids.levels[0].slice(0, 0, 15).equal(fp4));
  EXPECT_TRUE(grids.levels[1].slice(0, 0, 15).equal(flint));
  EXPECT_LT(squared_error(round_to_levels(rows, grids, false), rows),
            1e-3 * rows.square().sum().item<double>());
}

// With the uniform grid among the choices nothing is lost, and with normal weights much is gained.
TEST(ChooseLevels, AreNeverWorseThanTheUniformGrid) {
  const auto rows = test::normal({6, 400}, 3);
  const auto uniform = mse_grid(rows, weight_spec(4, false, Mode::deploy));
  const auto on_grid = cuda_kernels::fake_quant(rows, uniform.scale, uniform.zero_point, -8, 7,
                                                cuda_kernels::Surrogate::clipped);
  const auto error = [&](const std::vector<LevelTable>& tables) {
    return squared_error(round_to_levels(rows, choose_levels(rows, 4, tables), false), rows);
  };
  EXPECT_NEAR(error({LevelTable::integer}), squared_error(on_grid, rows), 1e-2);
  EXPECT_LE(error({LevelTable::integer, LevelTable::power_of_two}), error({LevelTable::integer}));
  EXPECT_LT(error({LevelTable::integer, LevelTable::learned}), 0.95 * error({LevelTable::integer}));
  EXPECT_LT(error({LevelTable::normal}), error({LevelTable::power_of_two}));
}

// ANT (2208.14286), written down once more: three types of signed numbers, for each channel the
// least squared error over the scales that put its largest weight at 0.75 to 1.49 of the largest
// number, and one type for the layer.
struct AntType {
  std::vector<double> numbers;
  double largest;
};

std::vector<double> with_negatives(std::vector<double> magnitudes) {
  const auto n = magnitudes.size();
  for (std::size_t i = 0; i < n; ++i) magnitudes.push_back(-magnitudes[i]);
  return magnitudes;
}

std::vector<AntType> ant_types(std::int64_t bits) {
  if (bits == 3) return {{{-4, -3, -2, -1, 0, 1, 2, 3}, 3}, {with_negatives({0, 1, 2, 4}), 4}};
  return {{{-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7}, 7},
          {with_negatives({0, 1, 2, 4, 8, 16, 32, 64}), 64},
          {with_negatives({0, 1, 2, 3, 4, 6, 8, 16}), 16}};
}

double error_at(const std::vector<double>& row, const AntType& type, double scale) {
  double sum = 0;
  for (const double w : row) {
    double least = std::numeric_limits<double>::infinity();
    for (const double number : type.numbers) least = std::min(least, std::fabs(w - number * scale));
    sum += least * least;
  }
  return sum;
}

struct AntChoice {
  std::size_t type = 0;
  double error = std::numeric_limits<double>::infinity();
  std::vector<double> errors;  // of each row
};

AntChoice ant_choice(const std::vector<std::vector<double>>& rows, std::int64_t bits) {
  AntChoice best;
  const auto types = ant_types(bits);
  for (std::size_t t = 0; t < types.size(); ++t) {
    AntChoice now{t, 0, {}};
    for (const auto& row : rows) {
      double largest = 0, least = std::numeric_limits<double>::infinity();
      for (const double w : row) largest = std::max(largest, std::fabs(w));
      for (int r = 75; r <= 149; ++r)
        least = std::min(least, error_at(row, types[t], r * largest / (100 * types[t].largest)));
      now.error += least;
      now.errors.push_back(least);
    }
    if (now.error < best.error) best = now;
  }
  return best;
}

// Uniform rows want int, rows with a few large weights power_of_two, normal ones flint.
TEST(ChooseLevels, ByLayerAsInAnt) {
  const auto normal = test::normal({5, 60}, 9);
  const std::vector<LevelTable> ant{LevelTable::symmetric_integer, LevelTable::power_of_two,
                                    LevelTable::flint};
  std::set<std::size_t> winners;
  for (const auto& weight :
       {normal, normal.erf(), normal.pow(5), normal.sign().mul(normal.square()),
        test::normal({3, 9}, 2), normal.mul(1e-6)})
    for (const std::int64_t bits : {3, 4}) {
      std::vector<std::vector<double>> rows;
      for (std::int64_t c = 0; c < weight.size(0); ++c) {
        const float* row = weight[c].const_data_ptr<float>();
        rows.emplace_back(row, row + weight.size(1));
      }
      const auto expected = ant_choice(rows, bits);
      winners.insert(expected.type);
      const auto grids = choose_levels(weight.contiguous(), bits, ant, LevelChoice::layer);
      const auto numbers = ant_types(bits)[expected.type].numbers;
      for (std::int64_t c = 0; c < weight.size(0); ++c) {
        const float* levels = grids.levels[c].const_data_ptr<float>();
        EXPECT_EQ(std::set<double>(levels, levels + grids.levels.size(1)),
                  std::set<double>(numbers.begin(), numbers.end()));
      }
      const auto error = round_to_levels(weight, grids, false).sub(weight).square().sum(1);
      for (std::int64_t c = 0; c < weight.size(0); ++c)
        EXPECT_NEAR(error[c].item<double>() / expected.errors[c], 1, 1e-4);
    }
  EXPECT_EQ(winners.size(), 3u);
}

// What lies between the rules: tables may come from both lists, and one table serves all rows.
TEST(ChooseLevels, ByLayerTakesOneTable) {
  const auto uniform = test::normal({1, 200}, 1).erf(), normal = test::normal({1, 200}, 2);
  const auto rows = at::cat({uniform, normal, normal.add(uniform.mul(0.1))});
  const std::vector<LevelTable> tables{LevelTable::symmetric_integer, LevelTable::normal};
  EXPECT_GE(distinct_levels(choose_levels(rows, 4, tables).levels).levels.size(0), 2);
  EXPECT_EQ(
      distinct_levels(choose_levels(rows, 4, tables, LevelChoice::layer).levels).levels.size(0), 1);
}

}  // namespace
}  // namespace zsq::quant::choose_levels_test
