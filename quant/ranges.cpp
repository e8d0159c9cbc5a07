// SPDX-License-Identifier: Apache-2.0
#include "quant/ranges.h"

#include <ATen/ops/aminmax.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/argmin.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/mv.h>

#include <cmath>

#include "core/error.h"
#include "quant/histogram.h"

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

// The smallest mean squared error of fake-quantization over (lo, hi) = r * (min, max), then over
// either end alone, r in {1, 0.99, ..., 0.01}.
class MeanSquaredError : public RangeObserver {
 public:
  explicit MeanSquaredError(const QuantizerSpec& spec) : spec_(spec) {}
  void observe(const at::Tensor& x) override { histogram_.add(x); }
  Range range() const override {
    const double min = histogram_.min(), max = histogram_.max();
    if (!std::isfinite(max - min)) return {min, max};
    const auto ratios = at::arange(100, 0, -1, at::kDouble).div(100);
    const auto same = [&](double v) { return at::full_like(ratios, v); };
    Range best = search(ratios.mul(min), ratios.mul(max));
    if (min < 0 && max > 0) {
      best = search(same(best.first), ratios.mul(max));
      best = search(ratios.mul(min), same(best.second));
    }
    return best;
  }

 private:
  Range search(const at::Tensor& lo, const at::Tensor& hi) const {
    const auto grid = cuda_kernels::grid_from_range(lo.to(at::kFloat), hi.to(at::kFloat),
                                                    spec_.qmin, spec_.qmax, spec_.symmetric);
    const auto values = histogram_.centres().expand({lo.size(0), Histogram::kBins}).contiguous();
    const auto quantized = cuda_kernels::fake_quant(values, grid.scale, grid.zero_point, spec_.qmin,
                                                    spec_.qmax, spec_.surrogate);
    const auto errors = at::mv(quantized.sub(values).square(), histogram_.shares());
    const auto best = errors.argmin().item<std::int64_t>();
    return {lo[best].item<double>(), hi[best].item<double>()};
  }

  QuantizerSpec spec_;
  Histogram histogram_;
};

}  // namespace

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
