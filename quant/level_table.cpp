// SPDX-License-Identifier: Apache-2.0
#include "quant/level_table.h"

#include <ATen/ops/searchsorted.h>
#include <ATen/ops/unique_dim.h>

#include <algorithm>
#include <cmath>
#include <ranges>

namespace zsq::quant {
namespace {

constexpr int kLloydSteps = 25;

std::vector<float> both_signs(const std::vector<float>& magnitudes) {
  std::vector<float> levels;
  for (const float level : std::views::reverse(magnitudes))
    if (level != 0) levels.push_back(-level);
  levels.insert(levels.end(), magnitudes.begin(), magnitudes.end());
  return levels;
}

}  // namespace

std::vector<float> fixed_levels(LevelTable table, std::int64_t bits) {
  const bool four = bits == 4, three = bits == 3;
  switch (table) {
    case LevelTable::symmetric_integer:
      if (four) return {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};
      if (three) return {-4, -3, -2, -1, 0, 1, 2, 3};
      break;
    case LevelTable::fp4:
      if (four) return both_signs({0, 1, 2, 3, 4, 6, 8, 12});
      break;
    case LevelTable::flint:
      if (four) return both_signs({0, 1, 2, 3, 4, 6, 8, 16});
      if (three) return both_signs({0, 1, 2, 4});
      break;
    case LevelTable::power_of_two:
      if (four) return both_signs({0, 1, 2, 4, 8, 16, 32, 64});
      if (three) return both_signs({0, 1, 2, 4});
      break;
    case LevelTable::normal:
      if (four) return {-64, -45, -34, -25, -18, -12, -6, 0, 5, 10, 16, 22, 28, 36, 46, 64};
      break;
    case LevelTable::integer:
    case LevelTable::learned:
      break;
  }
  return {};
}

std::vector<float> learned_levels(const at::Tensor& rows, std::int64_t bits) {
  const auto unit = rows.square().mean(1, true).sqrt().clamp_min(1e-20);
  const auto sorted = std::get<0>(rows.div(unit).flatten().sort()).contiguous();
  const float* x = sorted.const_data_ptr<float>();
  const std::int64_t n = sorted.numel(), count = std::int64_t{1} << bits;
  std::vector<double> sums(n + 1);
  for (std::int64_t i = 0; i < n; ++i) sums[i + 1] = sums[i] + x[i];
  std::vector<double> levels(count);
  for (std::int64_t k = 0; k < count; ++k) levels[k] = x[(2 * k + 1) * n / (2 * count)];
  const auto pin = [&] {  // the level nearest to 0
    *std::min_element(levels.begin(), levels.end(),
                      [](double a, double b) { return std::fabs(a) < std::fabs(b); }) = 0;
  };
  pin();
  for (int step = 0; step < kLloydSteps; ++step) {
    std::int64_t begin = 0;
    for (std::int64_t k = 0; k < count; ++k) {
      const auto end =
          k + 1 == count ? n
                         : std::lower_bound(x + begin, x + n, (levels[k] + levels[k + 1]) / 2) - x;
      if (end > begin && levels[k] != 0)
        levels[k] = (sums[end] - sums[begin]) / static_cast<double>(end - begin);
      begin = end;
    }
    pin();
  }
  const double top = std::max(levels.back(), -levels.front());
  std::vector<float> rounded;
  for (const double level : levels)
    rounded.push_back(
        static_cast<float>(std::nearbyint(level * kLargestLevel / std::max(top, 1e-20))));
  std::sort(rounded.begin(), rounded.end());
  return rounded;
}

Neighbours neighbours(const at::Tensor& x, const at::Tensor& levels) {
  const auto rows = x.flatten(1).contiguous(), table = levels.contiguous();
  const std::int64_t last = table.size(1) - 1;
  const auto above = at::searchsorted(table, rows, /*out_int32=*/false, /*right=*/true);
  const auto below = table.gather(1, above.sub(1).clamp_min(0));
  const auto gap = table.gather(1, above.clamp_max(last)).sub(below);
  return {below.view(x.sizes()), gap.masked_fill(above.eq(0), 0).view(x.sizes())};
}

DistinctLevels distinct_levels(const at::Tensor& levels) {
  auto [rows, index, counts] = at::unique_dim(levels, 0, /*sorted=*/true, /*return_inverse=*/true);
  return {std::move(rows), std::move(index)};
}

LevelGrids level_grids(const WeightQuantizer& op, const models::ParameterStore& parameters) {
  if (op.spec().format != NumberFormat::level_table) return {};
  return {parameters.at(op.scale_name()), parameters.at(op.levels_name())};
}

}  // namespace zsq::quant
