// SPDX-License-Identifier: Apache-2.0
#include "quant/calibration/weight_grid.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/argmin.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <numeric>

#include "cuda_kernels/cpu_loops.h"
#include "cuda_kernels/layer_fake_quant.h"
#include "cuda_kernels/quant_math.h"
#include "quant/pair_bound.h"

namespace zsq::quant {
namespace {

using cuda_kernels::CodeRange;
using cuda_kernels::fake_quant_value;
using cuda_kernels::Grid;
using cuda_kernels::UniformGrid;

constexpr std::int64_t kRatios = 71;  // 1, 0.99, ..., 0.3

// Sum of (w - fake_quant(w))^2 over n <= kBlock values. The lanes fix the order of the additions,
// so the compiler may use vectors.
constexpr std::int64_t kLanes = 16, kBlock = 4096;
ZSQ_VECTORIZED float block_error(const float* w, std::int64_t n, UniformGrid grid) {
  float lanes[kLanes] = {};
  const auto add = [&](std::int64_t lane, float x) {
    const float d = fake_quant_value(x, grid) - x;
    lanes[lane] += d * d;
  };
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (std::int64_t k = 0; k < kLanes; ++k) add(k, w[i + k]);
  for (; i < n; ++i) add(0, w[i]);
  return std::accumulate(lanes, lanes + kLanes, 0.0f);
}

// The same of n first neighbours and their partners, whose codes give way to each other as
// keep_pairs() has it.
ZSQ_VECTORIZED float block_error(const float* first, const float* second, std::int64_t n,
                                 UniformGrid grid, float bound) {
  float lanes[kLanes] = {};
  const auto add = [&](std::int64_t lane, float x, float y) {
    const float p = grid.encode(x) - grid.zero_point, q = grid.encode(y) - grid.zero_point;
    const float a = std::abs(p), b = std::abs(q), beyond = a + b - bound;
    const float excess = (p > 0) == (q > 0) && beyond > 0 ? beyond : 0.0f;
    const float half = std::floor(0.5f * excess), odd = excess - 2 * half;
    const bool from_first = a * grid.scale - std::abs(x) >= b * grid.scale - std::abs(y);
    const float d = (a - half - (from_first ? odd : 0.0f)) * grid.scale - (p < 0 ? -x : x);
    const float e = (b - half - (from_first ? 0.0f : odd)) * grid.scale - (q < 0 ? -y : y);
    lanes[lane] += d * d + e * e;
  };
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (std::int64_t k = 0; k < kLanes; ++k) add(k, first[i + k], second[i + k]);
  for (; i < n; ++i) add(0, first[i], second[i]);
  return std::accumulate(lanes, lanes + kLanes, 0.0f);
}

double squared_error(const float* w, std::int64_t n, UniformGrid grid, std::int64_t pair_bound) {
  const std::int64_t pairs = pair_bound ? n / 2 : n;
  double total = 0;
  for (std::int64_t begin = 0; begin < pairs; begin += kBlock) {
    const std::int64_t count = std::min(pairs - begin, kBlock);
    total += pair_bound ? block_error(w + begin, w + pairs + begin, count, grid,
                                      static_cast<float>(pair_bound))
                        : block_error(w + begin, count, grid);
  }
  return total;
}

// rows [C, n] on the CPU; scale, zero_point [R, C] -> errors f64 [R, C].
at::Tensor squared_errors(const at::Tensor& rows, const Grid& grids, const QuantizerSpec& spec) {
  const std::int64_t channels = rows.size(0), n = rows.size(1);
  const auto scale = grids.scale.contiguous(), zero_point = grids.zero_point.contiguous();
  auto errors = at::empty(scale.sizes(), scale.options().dtype(at::kDouble));
  const float *w = rows.const_data_ptr<float>(), *s = scale.const_data_ptr<float>(),
              *z = zero_point.const_data_ptr<float>();
  const CodeRange range{static_cast<float>(spec.qmin), static_cast<float>(spec.qmax)};
  double* out = errors.mutable_data_ptr<double>();
  at::parallel_for(0, errors.numel(), 1 + (1 << 16) / (n + 1), [&](std::int64_t a, std::int64_t b) {
    for (std::int64_t i = a; i < b; ++i)
      out[i] = squared_error(w + i % channels * n, n, {s[i], z[i], range}, spec.pair_bound);
  });
  return errors;
}

// The smallest and the largest value of each row, both multiplied until no pair is beyond its
// bound.
std::pair<at::Tensor, at::Tensor> wide_range(const at::Tensor& rows, const QuantizerSpec& spec) {
  auto [lo, hi] = cuda_kernels::channel_min_max(rows);
  if (spec.pair_bound == 0) return {lo, hi};
  const Grid grid = cuda_kernels::grid_from_range(lo, hi, spec.qmin, spec.qmax, spec.symmetric);
  const auto factor = pair_factor(rows.view({rows.size(0), 2, -1}), grid.scale, spec.pair_bound);
  return {lo * factor, hi * factor};
}

}  // namespace

Grid min_max_grid(const at::Tensor& rows, const QuantizerSpec& spec) {
  const auto [lo, hi] = wide_range(rows, spec);
  return cuda_kernels::grid_from_range(lo, hi, spec.qmin, spec.qmax, spec.symmetric);
}

Grid mse_grid(const at::Tensor& weight, const QuantizerSpec& spec) {
  const auto rows = weight.cpu();
  const auto [lo, hi] = wide_range(rows, spec);
  const auto ratios = at::arange(100, 100 - kRatios, -1, lo.options()).div(100).unsqueeze(1);
  const Grid grids = cuda_kernels::grid_from_range(ratios.mul(lo), ratios.mul(hi), spec.qmin,
                                                   spec.qmax, spec.symmetric);
  const auto errors = squared_errors(rows, grids, spec);
  const auto best = errors.argmin(0, /*keepdim=*/true);
  const auto chosen = [&](const at::Tensor& t) {
    return t.gather(0, best).squeeze(0).to(weight.device());
  };
  return {chosen(grids.scale), chosen(grids.zero_point)};
}

}  // namespace zsq::quant
