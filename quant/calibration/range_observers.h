// SPDX-License-Identifier: Apache-2.0
// What sees the values of an activation, batch after batch, and answers its range.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <utility>

#include "quant/calibration/histogram.h"
#include "quant/student.h"

namespace zsq::quant {

class RangeObserver {
 public:
  virtual ~RangeObserver() = default;
  virtual void observe(const at::Tensor& x) = 0;  // f32, any shape
  // lo <= 0 <= hi is not required. Not finite if one of the values was not.
  virtual std::pair<double, double> range() const = 0;
};

// Of each batch's minimum and maximum the exponential moving average (ema_decay), without the bias
// of its start.
std::unique_ptr<RangeObserver> moving_average_observer(const ActivationOptions&,
                                                       const QuantizerSpec&);
std::unique_ptr<RangeObserver> min_max_observer(const ActivationOptions&, const QuantizerSpec&);

// `range` of a histogram of all values, if these are finite.
using HistogramRange = std::function<std::pair<double, double>(const Histogram&)>;
std::unique_ptr<RangeObserver> histogram_observer(HistogramRange range);
// The tails outside hold (100 - percentile) %, in equal parts; none below where nothing is
// negative.
std::unique_ptr<RangeObserver> percentile_observer(const ActivationOptions&, const QuantizerSpec&);
// least_error_range(), power 2.
std::unique_ptr<RangeObserver> mse_observer(const ActivationOptions&, const QuantizerSpec&);

}  // namespace zsq::quant
