// SPDX-License-Identifier: Apache-2.0
#include "eval/label_measures.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/where.h>

#include <numeric>
#include <vector>

namespace zsq::eval {
namespace {

double mean_of(const at::Tensor& x) { return x.to(at::kDouble).mean().item<double>(); }

// scores, labels: [N] of one label, which some image has.
double average_precision(const at::Tensor& scores, const at::Tensor& labels) {
  const auto [sorted, order] = scores.sort(0, /*descending=*/true);
  const auto right = labels.index_select(0, order).to(at::kDouble).contiguous();
  const float* score = sorted.const_data_ptr<float>();
  const double* is_right = right.const_data_ptr<double>();
  double found = 0, found_here = 0, sum = 0;
  for (std::int64_t i = 0; i < scores.numel(); ++i) {
    found_here += is_right[i];
    const bool tied = i + 1 < scores.numel() && score[i + 1] == score[i];
    if (tied) continue;
    found += found_here;
    sum += found_here * found / static_cast<double>(i + 1);
    found_here = 0;
  }
  return sum / found;
}

}  // namespace

LabelMeasures measure_labels(const at::Tensor& scores, const at::Tensor& labels) {
  const auto seen = scores.gt(0);
  const auto both = seen.logical_and(labels).sum(1).to(at::kDouble);
  const auto all = seen.sum(1).add(labels.sum(1)).to(at::kDouble);
  const auto f1 = at::where(all.gt(0), both.mul(2).div(all.clamp_min(1)), 1.0);
  std::vector<double> precisions;
  for (std::int64_t k = 0; k < labels.size(1); ++k)
    if (labels.select(1, k).any().item<bool>())
      precisions.push_back(
          average_precision(scores.select(1, k).contiguous(), labels.select(1, k)));
  const double sum = std::accumulate(precisions.begin(), precisions.end(), 0.0);
  const auto count = static_cast<double>(precisions.size());
  return {100 * mean_of(seen.eq(labels)), 100 * mean_of(f1), count > 0 ? 100 * sum / count : 0};
}

}  // namespace zsq::eval
