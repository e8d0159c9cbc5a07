// SPDX-License-Identifier: Apache-2.0
#include "analysis/threshold_distance.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "cuda_kernels/inundation.h"

namespace zsq::analysis {
namespace {

class LayerHistogram {
 public:
  LayerHistogram(int low, int high, int per_decade)
      : low_(low),
        per_decade_(per_decade),
        counts_(static_cast<std::size_t>((high - low) * per_decade)) {}

  void add(double ratio) {
    ++all_;
    if (std::isinf(ratio)) {
      ++never_;
      return;
    }
    finite_.push_back(ratio);
    within_ += ratio <= 1;
    const double place = ratio > 0 ? (std::log10(ratio) - low_) * per_decade_ : 0;
    const auto last = static_cast<double>(counts_.size() - 1);
    ++counts_[static_cast<std::size_t>(std::clamp(std::floor(place), 0.0, last))];
  }

  void move_into(ThresholdDistances& result) {
    std::vector<double> shares;
    for (const double count : counts_) shares.push_back(count / all_);
    result.shares.push_back(std::move(shares));
    result.never.push_back(never_ / all_);
    result.within_one.push_back(within_ / all_);
    const auto middle = finite_.begin() + std::ssize(finite_) / 2;
    if (!finite_.empty()) std::nth_element(finite_.begin(), middle, finite_.end());
    result.median.push_back(finite_.empty() ? 0 : *middle);
  }

 private:
  double low_, per_decade_;
  std::vector<double> counts_, finite_;
  double all_ = 0, never_ = 0, within_ = 0;
};

}  // namespace

ThresholdDistances threshold_distances(const quant::Student& student,
                                       const std::vector<at::Tensor>& steps, int low, int high,
                                       int per_decade) {
  const at::NoGradGuard no_grad;
  const auto sites = quant::weight_sites(student);
  const auto layers = quant::weight_layers(sites, student.parameters);
  const auto grids = cuda_kernels::layer_grids(layers);
  ThresholdDistances result;
  for (int bin = 0; bin <= (high - low) * per_decade; ++bin)
    result.edges.push_back(low + static_cast<double>(bin) / per_decade);
  for (std::size_t i = 0; i < sites.size(); ++i) {
    result.layers.push_back(student.graph[sites[i].layer].name);
    const auto ratios =
        cuda_kernels::crossing_ratios(layers[i].weight.detach(), steps[i], grids[i].scale,
                                      grids[i].zero_point, layers[i].qmin, layers[i].qmax)
            .cpu()
            .contiguous();
    LayerHistogram histogram(low, high, per_decade);
    const float* values = ratios.const_data_ptr<float>();
    for (std::int64_t n = 0; n < ratios.numel(); ++n) histogram.add(values[n]);
    histogram.move_into(result);
  }
  return result;
}

}  // namespace zsq::analysis
