// SPDX-License-Identifier: Apache-2.0
#include "quant/level_table.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/unique_dim.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "quant/calibration/weight_grid.h"

namespace zsq::quant {
namespace {

constexpr int kLloydSteps = 25;
constexpr double kWidest = 1.49, kNarrowest = 0.31, kRatioStep = 0.04;

std::vector<float> mirrored(const std::vector<float>& levels) {
  std::vector<float> result;
  for (auto level = levels.rbegin(); level != levels.rend(); ++level) result.push_back(-*level);
  return result;
}

std::vector<float> both_signs(const std::vector<float>& magnitudes) {
  auto levels = mirrored(magnitudes);
  levels.pop_back();  // 0, once
  levels.insert(levels.end(), magnitudes.begin(), magnitudes.end());
  return levels;
}

// Ascending levels as `kMost` floats; the middles between them decide.
class Levels {
 public:
  static constexpr int kMost = 16;
  explicit Levels(const std::vector<float>& levels) {
    for (int i = 0; i < kMost; ++i) level_[i] = levels[std::min<std::size_t>(i, levels.size() - 1)];
    for (int i = 0; i + 1 < kMost; ++i) middle_[i] = (level_[i] + level_[i + 1]) / 2;
  }
  // Rank of the nearest level, of two equally near ones the smaller.
  int nearest(float x) const {
    int rank = 0;
    for (int half = kMost / 2; half > 0; half /= 2)
      if (x > middle_[rank + half - 1]) rank += half;
    return rank;
  }
  float operator[](int rank) const { return level_[rank]; }

 private:
  float level_[kMost], middle_[kMost - 1];
};

double squared_error(const float* w, std::int64_t n, float scale, const Levels& levels) {
  const float inverse = 1 / scale;
  double total = 0;
  for (std::int64_t begin = 0; begin < n; begin += 4096) {
    const std::int64_t end = std::min(n, begin + 4096);
    float part = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      const float x = w[i] * inverse, miss = levels[levels.nearest(x)] - x;
      part += miss * miss;
    }
    total += part;
  }
  return total * scale * scale;
}

struct Choice {
  double error = std::numeric_limits<double>::infinity();
  float scale = 1;
  std::vector<float> levels;
};

void try_table(const float* w, std::int64_t n, const std::vector<float>& levels, Choice& best) {
  float largest = 0;
  for (std::int64_t i = 0; i < n; ++i) largest = std::max(largest, std::fabs(w[i]));
  if (largest == 0) largest = 1;
  const float top = std::max(levels.back(), -levels.front());
  const Levels table(levels);
  for (double ratio = kWidest; ratio > kNarrowest; ratio -= kRatioStep) {
    const auto scale = static_cast<float>(ratio * largest / top);
    const double error = squared_error(w, n, scale, table);
    if (error < best.error) best = {error, scale, levels};
  }
}

// Of the asymmetric uniform grid with this scale and zero point.
std::vector<float> integer_levels(std::int64_t bits, float zero_point) {
  std::vector<float> levels(std::size_t{1} << bits);
  std::iota(levels.begin(), levels.end(), -static_cast<float>(levels.size() / 2) - zero_point);
  return levels;
}

// One row of a weight whose codes are decided.
class Row {
 public:
  Row(const float* w, std::int64_t n, float scale, const std::vector<float>& levels)
      : levels_(levels), rank_(n), error_(n) {
    for (std::int64_t i = 0; i < n; ++i) {
      const float x = w[i] / scale;
      rank_[i] = levels_.nearest(x);
      error_[i] = levels_[rank_[i]] - x;
    }
  }

  void cancel(std::int64_t begin, std::int64_t end) {
    double sum = 0;
    for (std::int64_t i = begin; i < end; ++i) sum += error_[i];
    const int direction = sum > 0 ? -1 : 1;
    std::vector<Flip> flips;
    for (std::int64_t i = begin; i < end; ++i) {
      const int next = rank_[i] + direction;
      // Only the other neighbour of the weight itself.
      if (next < 0 || next >= Levels::kMost || error_[i] * static_cast<float>(direction) >= 0)
        continue;
      const float gap = levels_[next] - levels_[rank_[i]], moved = error_[i] + gap;
      if (gap != 0)
        flips.push_back({(moved * moved - error_[i] * error_[i]) / std::fabs(gap), gap, i});
    }
    std::sort(flips.begin(), flips.end(), [](const Flip& a, const Flip& b) {
      return a.price != b.price ? a.price < b.price : a.element < b.element;
    });
    for (const Flip& flip : flips) {
      if (std::fabs(sum + flip.gap) >= std::fabs(sum)) continue;
      sum += flip.gap;
      rank_[flip.element] += direction;
      error_[flip.element] += flip.gap;
    }
  }

  float level(std::int64_t i) const { return levels_[rank_[i]]; }

 private:
  struct Flip {
    float price, gap;
    std::int64_t element;
  };
  Levels levels_;
  std::vector<int> rank_;
  std::vector<float> error_;  // in units of the scale
};

}  // namespace

std::vector<float> fixed_levels(LevelTable table, std::int64_t bits) {
  const bool four = bits == 4, three = bits == 3;
  switch (table) {
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

LevelGrids choose_levels(const at::Tensor& weight, std::int64_t bits,
                         const std::vector<LevelTable>& tables) {
  const auto rows = weight.detach().cpu().contiguous();
  const std::int64_t channels = rows.size(0), n = rows.size(1), count = std::int64_t{1} << bits;
  std::vector<std::vector<float>> candidates;
  bool integer = false;
  for (const LevelTable table : tables) {
    integer = integer || table == LevelTable::integer;
    const auto levels =
        table == LevelTable::learned ? learned_levels(rows, bits) : fixed_levels(table, bits);
    if (levels.empty()) continue;
    candidates.push_back(levels);
    if (mirrored(levels) != levels) candidates.push_back(mirrored(levels));
  }
  integer = integer || candidates.empty();
  const auto uniform =
      integer ? mse_grid(rows, weight_spec(bits, false, Mode::deploy)) : cuda_kernels::Grid{};
  LevelGrids result{at::empty({channels}), at::empty({channels, count})};
  const float *w = rows.const_data_ptr<float>(),
              *s = integer ? uniform.scale.const_data_ptr<float>() : nullptr,
              *z = integer ? uniform.zero_point.const_data_ptr<float>() : nullptr;
  float *scale = result.scale.mutable_data_ptr<float>(),
        *levels = result.levels.mutable_data_ptr<float>();
  at::parallel_for(0, channels, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t c = begin; c < end; ++c) {
      Choice best;
      if (integer) {
        const auto own = integer_levels(bits, z[c]);
        best = {squared_error(w + c * n, n, s[c], Levels(own)), s[c], own};
      }
      for (const auto& candidate : candidates) try_table(w + c * n, n, candidate, best);
      scale[c] = best.scale;
      for (std::int64_t k = 0; k < count; ++k)
        levels[c * count + k] = best.levels[std::min<std::size_t>(k, best.levels.size() - 1)];
    }
  });
  return {result.scale.to(weight.device()), result.levels.to(weight.device())};
}

DistinctLevels distinct_levels(const at::Tensor& levels) {
  auto [rows, index, counts] = at::unique_dim(levels, 0, /*sorted=*/true, /*return_inverse=*/true);
  return {std::move(rows), std::move(index)};
}

at::Tensor round_to_levels(const at::Tensor& weight, const LevelGrids& grids, bool cancel_errors) {
  const auto w = weight.detach().cpu().contiguous();
  const auto scales = grids.scale.cpu().contiguous(), tables = grids.levels.cpu().contiguous();
  const std::int64_t channels = w.size(0), n = w.numel() / channels, count = tables.size(1);
  const std::int64_t kernel = w.dim() == 4 ? w.size(2) * w.size(3) : 1;
  auto out = at::empty_like(w);
  const float *in = w.const_data_ptr<float>(), *s = scales.const_data_ptr<float>(),
              *l = tables.const_data_ptr<float>();
  float* result = out.mutable_data_ptr<float>();
  at::parallel_for(0, channels, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t c = begin; c < end; ++c) {
      Row row(in + c * n, n, s[c], {l + c * count, l + (c + 1) * count});
      if (cancel_errors) {
        for (std::int64_t k = 0; kernel > 1 && k < n; k += kernel) row.cancel(k, k + kernel);
        row.cancel(0, n);
      }
      for (std::int64_t i = 0; i < n; ++i) result[c * n + i] = row.level(i) * s[c];
    }
  });
  return out.to(weight.device());
}

LevelGrids level_grids(const WeightQuantizer& op, const models::ParameterStore& parameters) {
  if (op.spec().format != NumberFormat::level_table) return {};
  return {parameters.at(op.scale_name()), parameters.at(op.levels_name())};
}

void round_weights_to_levels(Student& student, bool cancel_errors) {
  std::set<std::string> done;  // layers may share their weights
  for (const auto& site : weight_sites(student)) {
    const auto grids = level_grids(*site.op, student.parameters);
    if (!grids.levels.defined() || !done.insert(site.parameter).second) continue;
    auto& weight = student.parameters.at(site.parameter);
    weight = round_to_levels(weight, grids, cancel_errors);
  }
}

}  // namespace zsq::quant
