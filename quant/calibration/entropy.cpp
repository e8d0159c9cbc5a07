// SPDX-License-Identifier: Apache-2.0
#include "quant/calibration/entropy.h"

#include <ATen/ops/full.h>

#include <limits>

namespace zsq::quant {
namespace {

double divergence(const Histogram& histogram, const QuantizerSpec& spec, double lo, double hi) {
  const auto x = histogram.centres(), all = histogram.shares().to(at::kDouble);
  const auto inside = x.ge(lo).logical_and(x.le(hi)).logical_and(all.gt(0)).nonzero().flatten();
  if (inside.numel() == 0) return std::numeric_limits<double>::infinity();
  const auto mass = all.index_select(0, inside);
  const auto [scale, zero_point] = cuda_kernels::grid_from_range(
      at::full({}, lo, at::kFloat), at::full({}, hi, at::kFloat), spec.qmin, spec.qmax, false);
  const auto codes =
      cuda_kernels::quantize(x.index_select(0, inside), scale, zero_point, spec.qmin, spec.qmax)
          .sub(spec.qmin)
          .to(at::kLong);
  const auto by_code = [&](const at::Tensor& t) {
    return mass.new_zeros({spec.qmax - spec.qmin + 1}).scatter_add_(0, codes, t);
  };
  const auto q = by_code(mass).div(by_code(mass.gt(0).to(at::kDouble))).index_select(0, codes);
  auto p = mass.clone();
  p[0] += all.masked_select(x.lt(lo)).sum();
  p[-1] += all.masked_select(x.gt(hi)).sum();
  return p.mul(p.div(q).mul(mass.sum()).log()).sum().item<double>();
}

}  // namespace

std::unique_ptr<RangeObserver> entropy_observer(const ActivationOptions&,
                                                const QuantizerSpec& spec) {
  return histogram_observer([spec](const Histogram& h) {
    std::pair<double, int> best{std::numeric_limits<double>::infinity(), 100};
    for (int r = 100; r > 0; --r)
      best = std::min(best, {divergence(h, spec, h.min() * r / 100, h.max() * r / 100), r},
                      [](const auto& a, const auto& b) { return a.first < b.first; });
    return std::pair{h.min() * best.second / 100, h.max() * best.second / 100};
  });
}

}  // namespace zsq::quant
