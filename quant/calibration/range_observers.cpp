// SPDX-License-Identifier: Apache-2.0
#include "quant/calibration/range_observers.h"

#include <ATen/ops/aminmax.h>

#include <cmath>

#include "quant/calibration/ranges.h"

namespace zsq::quant {
namespace {

using Range = std::pair<double, double>;

Range ends_of(const at::Tensor& x) {
  const auto [lo, hi] = at::aminmax(x.detach());
  return {lo.item<float>(), hi.item<float>()};
}

class MinMax : public RangeObserver {
 public:
  void observe(const at::Tensor& x) override {
    const auto [lo, hi] = ends_of(x);
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
    const auto [lo, hi] = ends_of(x);
    lo_ = decay_ * lo_ + (1 - decay_) * lo;
    hi_ = decay_ * hi_ + (1 - decay_) * hi;
    weight_ = decay_ * weight_ + (1 - decay_);
  }
  Range range() const override { return {lo_ / weight_, hi_ / weight_}; }

 private:
  double decay_, lo_ = 0, hi_ = 0, weight_ = 0;  // weight_ = 1 - d^t
};

class OfHistogram : public RangeObserver {
 public:
  explicit OfHistogram(HistogramRange range) : range_(std::move(range)) {}
  void observe(const at::Tensor& x) override { histogram_.add(x); }
  Range range() const override {
    const Range all{histogram_.min(), histogram_.max()};
    return std::isfinite(all.second - all.first) ? range_(histogram_) : all;
  }

 private:
  HistogramRange range_;
  Histogram histogram_;
};

}  // namespace

std::unique_ptr<RangeObserver> moving_average_observer(const ActivationOptions& options,
                                                       const QuantizerSpec&) {
  return std::make_unique<MovingAverage>(options.ema_decay);
}

std::unique_ptr<RangeObserver> min_max_observer(const ActivationOptions&, const QuantizerSpec&) {
  return std::make_unique<MinMax>();
}

std::unique_ptr<RangeObserver> histogram_observer(HistogramRange range) {
  return std::make_unique<OfHistogram>(std::move(range));
}

std::unique_ptr<RangeObserver> percentile_observer(const ActivationOptions& options,
                                                   const QuantizerSpec&) {
  return histogram_observer([outside = 1 - options.percentile / 100](const Histogram& h) {
    return h.min() >= 0 ? Range{0, h.quantile(1 - outside)}
                        : Range{h.quantile(outside / 2), h.quantile(1 - outside / 2)};
  });
}

std::unique_ptr<RangeObserver> mse_observer(const ActivationOptions&, const QuantizerSpec& spec) {
  return histogram_observer([spec](const Histogram& h) { return least_error_range(h, spec, 2); });
}

}  // namespace zsq::quant
