// SPDX-License-Identifier: Apache-2.0
#include "quant/calibration/histogram.h"

#include <ATen/ops/aminmax.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/histc.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>

namespace zsq::quant {

bool Histogram::extend(const at::Tensor& x) {
  const auto [smallest, largest] = at::aminmax(x);
  const double lo = smallest.item<float>(), hi = largest.item<float>();
  const bool first = counts_.empty();
  if (first || lo < min_ || std::isnan(lo)) min_ = lo;
  if (first || hi > max_ || std::isnan(hi)) max_ = hi;
  if (!std::isfinite(min_) || !std::isfinite(max_)) {
    counts_.resize(kBins);
    return false;
  }
  cover(lo, hi);
  return true;
}

void Histogram::add(const at::Tensor& x, const at::Tensor& weights) {
  const auto values = x.detach();
  if (!extend(values)) return;
  const auto bins = values.sub(lo_).div(width_).to(at::kLong).clamp(0, kBins - 1);
  const auto counts = at::bincount(bins.reshape(-1), weights.expand_as(x).reshape(-1), kBins).cpu();
  const auto sums = counts.to(at::kDouble);
  for (std::int64_t i = 0; i < kBins; ++i) counts_[i] += sums.const_data_ptr<double>()[i];
  total_ += sums.sum().item<double>();
}

void Histogram::add(const at::Tensor& x) {
  const auto flat = x.detach().reshape(-1);
  if (!extend(flat)) return;
  // histc counts in f32, which is exact up to 2^24.
  for (const auto& part : flat.split(std::int64_t{1} << 24)) {
    const auto counts = at::histc(part, kBins, lo_, lo_ + kBins * width_).cpu();
    const float* c = counts.const_data_ptr<float>();
    for (std::int64_t i = 0; i < kBins; ++i) {
      counts_[i] += c[i];
      total_ += c[i];
    }
  }
}

void Histogram::cover(double lo, double hi) {
  if (width_ == 0) {
    counts_.assign(kBins, 0.0);
    lo_ = lo;
    // A little wider than the data, so that rounding the bounds to f32 loses no value.
    width_ = std::max((hi - lo) * (1 + 1e-6), 1e-6 * std::max(1e-20, std::abs(lo))) / kBins;
  }
  constexpr std::int64_t half = kBins / 2;
  auto double_width = [&](std::int64_t offset) {  // old bins 2i, 2i+1 become bin offset + i
    std::vector<double> wider(kBins, 0.0);
    for (std::int64_t i = 0; i < half; ++i) wider[offset + i] = counts_[2 * i] + counts_[2 * i + 1];
    counts_ = std::move(wider);
    width_ *= 2;
  };
  while (lo_ + kBins * width_ < hi) double_width(0);
  while (lo_ > lo) {
    lo_ -= kBins * width_;
    double_width(half);
  }
}

double Histogram::quantile(double share) const {
  const double target = share * total_;
  double below = 0;
  for (std::int64_t i = 0; i < kBins; ++i) {
    if (counts_[i] > 0 && below + counts_[i] >= target) {
      const double value = lo_ + (i + (target - below) / counts_[i]) * width_;
      return std::clamp(value, min_, max_);
    }
    below += counts_[i];
  }
  return max_;
}

at::Tensor Histogram::centres() const {
  return at::arange(kBins, at::kDouble).add(0.5).mul(width_).add(lo_).to(at::kFloat);
}

at::Tensor Histogram::shares() const {
  return at::tensor(counts_, at::kDouble).div(total_).to(at::kFloat);
}

}  // namespace zsq::quant
