// SPDX-License-Identifier: Apache-2.0
#include "quant/choose_levels.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <ranges>

#include "quant/calibration/weight_grid.h"
#include "quant/lanes.h"
#include "quant/nearest_level.h"

namespace zsq::quant {
namespace {

constexpr double kWidest = 1.49, kNarrowest = 0.31, kRatioStep = 0.04;

std::vector<float> mirrored(const std::vector<float>& levels) {
  std::vector<float> result;
  for (const float level : std::views::reverse(levels)) result.push_back(-level);
  return result;
}

// Of n numbers in steps of a scale, the sum of squares of what is missing to the nearest level.
ZSQ_VECTORIZED double missing(const float* w, std::int64_t n, float inverse, const float* levels) {
  double sums[kLanes]{};
  for (std::int64_t i = 0; i + kLanes <= n; i += kLanes) {
    Lanes x;
    load(x, w + i);
    x *= inverse;
    Lanes least = (levels[0] - x) * (levels[0] - x);
    for (int k = 1; k < Levels::kMost; ++k) {
      const Lanes square = (levels[k] - x) * (levels[k] - x);
      least = square < least ? square : least;
    }
    add_lanes(sums, least);
  }
  return std::accumulate(sums, sums + kLanes, 0.0);
}

double squared_error(const float* w, std::int64_t n, float scale, const Levels& levels) {
  const float inverse = 1 / scale;
  const auto whole = n - n % kLanes;
  double total = missing(w, whole, inverse, levels.data());
  for (std::int64_t i = whole; i < n; ++i) {
    const float x = w[i] * inverse, miss = levels[levels.nearest(x)] - x;
    total += miss * miss;
  }
  return total * scale * scale;
}

// Where scales put the largest weight, in multiples of the largest level.
std::vector<double> scale_ratios(LevelChoice choice) {
  std::vector<double> ratios;
  if (choice == LevelChoice::layer)
    for (int percent = 75; percent < 150; ++percent) ratios.push_back(percent / 100.0);
  else
    for (double ratio = kWidest; ratio > kNarrowest; ratio -= kRatioStep) ratios.push_back(ratio);
  return ratios;
}

float largest_level(const std::vector<float>& levels, LevelChoice choice) {
  const auto [smaller, larger] = std::minmax({-levels.front(), levels.back()});
  return choice == LevelChoice::layer && smaller > 0 ? smaller : larger;
}

struct Fit {
  double error = std::numeric_limits<double>::infinity();
  float scale = 1;
};

// The best scale for a row and a table, `top` being the table's largest level.
Fit fit(const float* w, std::int64_t n, const Levels& levels, float top,
        const std::vector<double>& ratios) {
  float largest = 0;
  for (std::int64_t i = 0; i < n; ++i) largest = std::max(largest, std::fabs(w[i]));
  if (largest == 0) largest = 1;
  Fit best;
  for (const double ratio : ratios) {
    const auto scale = static_cast<float>(ratio * largest / top);
    const double error = squared_error(w, n, scale, levels);
    if (error < best.error) best = {error, scale};
  }
  return best;
}

// Of the asymmetric uniform grid with this scale and zero point.
std::vector<float> integer_levels(std::int64_t bits, float zero_point) {
  const std::int64_t half = std::int64_t{1} << (bits - 1);
  std::vector<float> levels(static_cast<std::size_t>(2 * half));
  std::iota(levels.begin(), levels.end(), -static_cast<float>(half) - zero_point);
  return levels;
}

// The tables of a list that do not depend on the row.
std::vector<std::vector<float>> candidates_of(const at::Tensor& rows, std::int64_t bits,
                                              const std::vector<LevelTable>& tables) {
  std::vector<std::vector<float>> candidates;
  for (const LevelTable table : tables) {
    const auto levels =
        table == LevelTable::learned ? learned_levels(rows, bits) : fixed_levels(table, bits);
    if (levels.empty()) continue;
    candidates.push_back(levels);
    // ANT has -8..7 only.
    if (mirrored(levels) != levels && table != LevelTable::symmetric_integer)
      candidates.push_back(mirrored(levels));
  }
  return candidates;
}

// Of fits [candidate][row] the best candidate for each row, the first of equal ones.
std::vector<std::size_t> choose(const std::vector<std::vector<Fit>>& fits, LevelChoice choice) {
  const std::size_t rows = fits[0].size();
  if (choice == LevelChoice::layer) {
    std::vector<double> sums;
    for (const auto& of_rows : fits)
      sums.push_back(std::accumulate(of_rows.begin(), of_rows.end(), 0.0,
                                     [](double sum, const Fit& row) { return sum + row.error; }));
    const auto best = std::min_element(sums.begin(), sums.end()) - sums.begin();
    return std::vector<std::size_t>(rows, static_cast<std::size_t>(best));
  }
  std::vector<std::size_t> chosen(rows, 0);
  for (std::size_t c = 0; c < rows; ++c)
    for (std::size_t k = 1; k < fits.size(); ++k)
      if (fits[k][c].error < fits[chosen[c]][c].error) chosen[c] = k;
  return chosen;
}

}  // namespace

LevelGrids choose_levels(const at::Tensor& weight, std::int64_t bits,
                         const std::vector<LevelTable>& tables, LevelChoice choice) {
  const auto rows = weight.detach().cpu().contiguous();
  const std::int64_t channels = rows.size(0), n = rows.size(1), count = std::int64_t{1} << bits;
  const auto candidates = candidates_of(rows, bits, tables);
  const bool integer = candidates.empty() ||
                       std::find(tables.begin(), tables.end(), LevelTable::integer) != tables.end();
  const auto uniform =
      integer ? mse_grid(rows, weight_spec(bits, false, Mode::deploy)) : cuda_kernels::Grid{};
  const float *w = rows.const_data_ptr<float>(),
              *s = integer ? uniform.scale.const_data_ptr<float>() : nullptr,
              *z = integer ? uniform.zero_point.const_data_ptr<float>() : nullptr;
  // First of all the uniform grid, if it may be.
  const std::size_t first = integer ? 1 : 0;
  std::vector<std::vector<Fit>> fits(candidates.size() + first, std::vector<Fit>(channels));
  const auto ratios = scale_ratios(choice);
  at::parallel_for(0, channels, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t c = begin; c < end; ++c) {
      const float* row = w + c * n;
      if (integer)
        fits[0][c] = {squared_error(row, n, s[c], Levels(integer_levels(bits, z[c]))), s[c]};
      for (std::size_t k = 0; k < candidates.size(); ++k)
        fits[first + k][c] =
            fit(row, n, Levels(candidates[k]), largest_level(candidates[k], choice), ratios);
    }
  });
  const auto chosen = choose(fits, choice);
  LevelGrids result{at::empty({channels}), at::empty({channels, count})};
  float *scale = result.scale.mutable_data_ptr<float>(),
        *levels = result.levels.mutable_data_ptr<float>();
  for (std::int64_t c = 0; c < channels; ++c) {
    scale[c] = fits[chosen[c]][c].scale;
    const auto own = chosen[c] < first ? integer_levels(bits, z[c]) : candidates[chosen[c] - first];
    for (std::int64_t k = 0; k < count; ++k)
      levels[c * count + k] = own[std::min<std::size_t>(k, own.size() - 1)];
  }
  return {result.scale.to(weight.device()), result.levels.to(weight.device())};
}

}  // namespace zsq::quant
