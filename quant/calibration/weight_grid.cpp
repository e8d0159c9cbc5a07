// SPDX-License-Identifier: Apache-2.0
#include "quant/calibration/weight_grid.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/argmin.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <numeric>

#include "cuda_kernels/cpu_loops.h"
#include "cuda_kernels/layer_fake_quant.h"
#include "cuda_kernels/quant_math.h"

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

double squared_error(const float* w, std::int64_t n, UniformGrid grid) {
  double total = 0;
  for (std::int64_t begin = 0; begin < n; begin += kBlock)
    total += block_error(w + begin, std::min(n - begin, kBlock), grid);
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
      out[i] = squared_error(w + i % channels * n, n, {s[i], z[i], range});
  });
  return errors;
}

}  // namespace

Grid min_max_grid(const at::Tensor& rows, const QuantizerSpec& spec) {
  return cuda_kernels::layer_grids({{.weight = rows,
                                     .qmin = spec.qmin,
                                     .qmax = spec.qmax,
                                     .symmetric = spec.symmetric,
                                     .per_channel = true}})[0];
}

Grid mse_grid(const at::Tensor& weight, const QuantizerSpec& spec) {
  const auto rows = weight.cpu();
  const auto [lowest, highest] = cuda_kernels::channel_min_max(weight);
  const auto lo = lowest.cpu(), hi = highest.cpu();
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
