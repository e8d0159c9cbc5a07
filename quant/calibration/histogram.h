// SPDX-License-Identifier: Apache-2.0
// Counts of values in bins of equal width. The range grows with the data by doubling the bins'
// width, so memory is fixed and no value is ever outside.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

namespace zsq::quant {

class Histogram {
 public:
  static constexpr std::int64_t kBins = 4096;

  void add(const at::Tensor& x);  // f32, any shape, at least one element
  // Each value as often as `weights` says: f32, finite, broadcasts with x.
  void add(const at::Tensor& x, const at::Tensor& weights);

  double min() const { return min_; }  // of all values seen; not finite if one was not
  double max() const { return max_; }
  double width() const { return width_; }
  double quantile(double share) const;  // linear within a bin
  at::Tensor centres() const;           // f32 [kBins]
  at::Tensor shares() const;            // f32 [kBins], sum 1

 private:
  // Makes room for the values; false where one was not finite.
  bool extend(const at::Tensor& x);
  void cover(double lo, double hi);

  double lo_ = 0, width_ = 0;  // of the first bin; of each bin. width_ 0: nothing seen
  double min_ = 0, max_ = 0, total_ = 0;
  std::vector<double> counts_;
};

}  // namespace zsq::quant
