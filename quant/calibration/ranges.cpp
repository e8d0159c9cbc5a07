// SPDX-License-Identifier: Apache-2.0
#include "quant/calibration/ranges.h"

#include <ATen/ops/aminmax.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/argmin.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/mv.h>

#include <cmath>

#include "core/error.h"

namespace zsq::quant {
namespace {

using Range = std::pair<double, double>;

Range min_max(const at::Tensor& x) {
  const auto [lo, hi] = at::aminmax(x.detach());
  return {lo.item<float>(), hi.item<float>()};
}

class MinMax : public RangeObserver {
 public:
  void observe(const at::Tensor& x) override {
    const auto [lo, hi] = min_max(x);
    if (!seen_ || lo < range_.first || std::isnan(lo)) range_.first = lo;
    if (!seen_ || hi > range_.second || std::isnan(hi)) range_.second = hi;
    seen_ = true;
  }
  Range range() const override { return range_; }

 private:
  bool seen_ = false;
  Range range_;
};

// m_t = d m_(t-1) + (1 - d) x_t from m_0 = 0, read as m_t / (1 - d^t).
class MovingAverage : public RangeObserver {
 public:
  explicit MovingAverage(double decay) : decay_(decay) {}
  void observe(const at::Tensor& x) override {
    const auto [lo, hi] = min_max(x);
    lo_ = decay_ * lo_ + (1 - decay_) * lo;
    hi_ = decay_ * hi_ + (1 - decay_) * hi;
    weight_ = decay_ * weight_ + (1 - decay_);
  }
  Range range() const override { return {lo_ / weight_, hi_ / weight_}; }

 private:
  double decay_, lo_ = 0, hi_ = 0, weight_ = 0;  // weight_ = 1 - d^t
};

// The tails outside hold (100 - percentile) %, in equal parts; none below where nothing is
// negative.
class Percentile : public RangeObserver {
 public:
  explicit Percentile(double percentile) : outside_(1 - percentile / 100) {}
  void observe(const at::Tensor& x) override { histogram_.add(x); }
  Range range() const override {
    if (!std::isfinite(histogram_.max() - histogram_.min()))
      return {histogram_.min(), histogram_.max()};
    if (histogram_.min() >= 0) return {0, histogram_.quantile(1 - outside_)};
    return {histogram_.quantile(outside_ / 2), histogram_.quantile(1 - outside_ / 2)};
  }

 private:
  double outside_;
  Histogram histogram_;
};

class MeanSquaredError : public RangeObserver {
 public:
  explicit MeanSquaredError(const QuantizerSpec& spec) : spec_(spec) {}
  void observe(const at::Tensor& x) override { histogram_.add(x); }
  Range range() const override { return least_error_range(histogram_, spec_, 2); }

 private:
  QuantizerSpec spec_;
  Histogram histogram_;
};

// The best of the ranges (lo[i], hi[i]).
Range least_error(const Histogram& histogram, const QuantizerSpec& spec, double power,
                  const at::Tensor& lo, const at::Tensor& hi) {
  const auto grid = cuda_kernels::grid_from_range(lo.to(at::kFloat), hi.to(at::kFloat), spec.qmin,
                                                  spec.qmax, spec.symmetric);
  const auto values = histogram.centres().expand({lo.size(0), Histogram::kBins}).contiguous();
  const auto quantized = cuda_kernels::fake_quant(values, grid.scale, grid.zero_point, spec.qmin,
                                                  spec.qmax, spec.surrogate);
  const auto errors = at::mv(quantized.sub(values).abs().pow(power), histogram.shares());
  const auto best = errors.argmin().item<std::int64_t>();
  return {lo[best].item<double>(), hi[best].item<double>()};
}

}  // namespace

Range least_error_range(const Histogram& histogram, const QuantizerSpec& spec, double power) {
  const double min = histogram.min(), max = histogram.max();
  if (!std::isfinite(max - min)) return {min, max};
  const auto ratios = at::arange(100, 0, -1, at::kDouble).div(100);
  const auto same = [&](double v) { return at::full_like(ratios, v); };
  const auto search = [&](const at::Tensor& lo, const at::Tensor& hi) {
    return least_error(histogram, spec, power, lo, hi);
  };
  Range best = search(ratios.mul(min), ratios.mul(max));
  if (min < 0 && max > 0) {
    best = search(same(best.first), ratios.mul(max));
    best = search(ratios.mul(min), same(best.second));
  }
  return best;
}

std::unique_ptr<RangeObserver> range_observer(const ActivationOptions& options,
                                              const QuantizerSpec& spec) {
  switch (options.range) {
    case ActivationRange::ema:
      return std::make_unique<MovingAverage>(options.ema_decay);
    case ActivationRange::min_max:
      return std::make_unique<MinMax>();
    case ActivationRange::percentile:
      return std::make_unique<Percentile>(options.percentile);
    case ActivationRange::mse:
      return std::make_unique<MeanSquaredError>(spec);
    case ActivationRange::bn_statistics:
      break;  // needs no values
  }
  throw Error(ErrorCode::internal, "no observer for this range rule");
}

}  // namespace zsq::quant
