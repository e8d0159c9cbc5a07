// SPDX-License-Identifier: Apache-2.0
#include "quant/calibration/ranges.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/argmin.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/mv.h>

#include <cmath>

namespace zsq::quant {
namespace {

using Range = std::pair<double, double>;

// The best of the ranges (lo[i], hi[i]).
Range least_error(const Histogram& histogram, const QuantizerSpec& spec, double power,
                  const FunctionOfValues& f, const at::Tensor& lo, const at::Tensor& hi) {
  const auto grid = cuda_kernels::grid_from_range(lo.to(at::kFloat), hi.to(at::kFloat), spec.qmin,
                                                  spec.qmax, spec.symmetric);
  const auto values = histogram.centres().expand({lo.size(0), Histogram::kBins}).contiguous();
  const auto quantized = cuda_kernels::fake_quant(values, grid.scale, grid.zero_point, spec.qmin,
                                                  spec.qmax, spec.surrogate);
  const auto error = f ? f(quantized).sub(f(values)) : quantized.sub(values);
  const auto errors = at::mv(error.abs().pow(power), histogram.shares());
  const auto best = errors.argmin().item<std::int64_t>();
  return {lo[best].item<double>(), hi[best].item<double>()};
}

}  // namespace

Range least_error_range(const Histogram& histogram, const QuantizerSpec& spec, double power,
                        const FunctionOfValues& f) {
  const double min = histogram.min(), max = histogram.max();
  if (!std::isfinite(max - min)) return {min, max};
  const auto ratios = at::arange(100, 0, -1, at::kDouble).div(100);
  const auto same = [&](double v) { return at::full_like(ratios, v); };
  const auto search = [&](const at::Tensor& lo, const at::Tensor& hi) {
    return least_error(histogram, spec, power, f, lo, hi);
  };
  Range best = search(ratios.mul(min), ratios.mul(max));
  if (min < 0 && max > 0) {
    best = search(same(best.first), ratios.mul(max));
    best = search(ratios.mul(min), same(best.second));
  }
  return best;
}

}  // namespace zsq::quant
