// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report/output_comparison.h"

#include <ATen/ops/cat.h>

#include <algorithm>
#include <utility>

#include "pipeline/report/quality.h"
#include "train/agreement.h"

namespace zsq::pipeline {

OutputComparison::OutputComparison(models::OutputRow row)
    : row_(std::move(row)),
      keeps_(row_ == models::OutputKind::values ||
             std::ranges::any_of(row_.outputs(), [](const models::Output& output) {
               return output.kind == models::OutputKind::values;
             })) {}

void OutputComparison::add(const at::Tensor& a, const at::Tensor& b) {
  a_.push_back(a);
  b_.push_back(b);
  if (!keeps_) measure_kept();
}

void OutputComparison::measure_kept() {
  if (a_.empty()) return;
  const at::Tensor a = at::cat(std::exchange(a_, {})), b = at::cat(std::exchange(b_, {}));
  const auto n = static_cast<double>(a.size(0));
  const auto all = train::compare_outputs(row_, a, b);
  const auto apart = measure_outputs(row_, a, b);
  images_ += a.size(0);
  sum_.divergence += all.kl * n;
  sum_.agreement += all.agreement * n;
  for (std::size_t i = 0; i < apart.size(); ++i) {
    if (sum_.outputs_apart.size() <= i)
      sum_.outputs_apart.push_back({apart[i].name, apart[i].kind, apart[i].numbers});
    sum_.outputs_apart[i].divergence += apart[i].divergence * n;
    sum_.outputs_apart[i].agreement += apart[i].agreement * n;
  }
}

OutputAgreement OutputComparison::result() {
  measure_kept();
  OutputAgreement mean = sum_;
  const double images = static_cast<double>(std::max<std::int64_t>(images_, 1));
  mean.divergence /= images;
  mean.agreement /= images;
  for (auto& one : mean.outputs_apart) {
    one.divergence /= images;
    one.agreement /= images;
  }
  return mean;
}

}  // namespace zsq::pipeline
