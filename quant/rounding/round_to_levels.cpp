// SPDX-License-Identifier: Apache-2.0
#include "quant/rounding/round_to_levels.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "quant/nearest_level.h"

namespace zsq::quant {
namespace {

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

at::Tensor inside_cells(const at::Tensor& weight, const at::Tensor& rounded,
                        const LevelGrids& grids) {
  constexpr double kHalf = 0.5, kInside = kHalf - 1.0 / 64;  // of the gap to a neighbour
  const auto scale = grids.scale.unsqueeze(1), levels = grids.levels.contiguous();
  const auto x = weight.flatten(1).div(scale);
  const auto level = rounded.flatten(1).div(scale).round();
  const auto other = [&](bool above) {
    const auto place = at::searchsorted(levels, level, /*out_int32=*/false, /*right=*/above);
    const auto rank = above ? place : place.sub(1);
    const auto found = levels.gather(1, rank.clamp(0, levels.size(1) - 1));
    const double end =
        above ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
    return found.masked_fill(rank.lt(0).logical_or(rank.eq(levels.size(1))), end);
  };
  const auto below = level.sub(other(false)), above = other(true).sub(level);  // gaps
  const auto lies_within = [&](double share) {
    return at::minimum(at::maximum(x, level.sub(below, share)), level.add(above, share));
  };
  const auto moved = lies_within(kHalf).ne(x);
  return at::where(moved, lies_within(kInside), x).mul(scale).view(weight.sizes());
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
