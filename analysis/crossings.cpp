// SPDX-License-Identifier: Apache-2.0
#include "analysis/crossings.h"

#include <ATen/core/grad_mode.h>

namespace zsq::analysis {

double Crossings::mean_share() const {
  double codes = 0, changed = 0;
  for (const auto& epoch : shares)
    for (std::size_t layer = 0; layer < epoch.size(); ++layer) {
      codes += sizes[layer];
      changed += sizes[layer] * epoch[layer];
    }
  return codes > 0 ? changed / codes : 0;
}

CrossingCounter::CrossingCounter(const quant::Student& student)
    : student_(student), sites_(quant::weight_sites(student)), changed_(sites_.size(), 0) {
  for (const quant::WeightSite& site : sites_) {
    crossings_.layers.push_back(student.graph[site.layer].name);
    crossings_.sizes.push_back(static_cast<double>(student.parameters.at(site.parameter).numel()));
  }
}

std::vector<cuda_kernels::QuantLayer> CrossingCounter::layers_now() const {
  return quant::weight_layers(sites_, student_.parameters);
}

void CrossingCounter::before_step() {
  const at::NoGradGuard no_grad;
  before_ = layers_now();
  const auto grids = cuda_kernels::layer_grids(before_);
  for (std::size_t i = 0; i < before_.size(); ++i) {
    before_[i].grid = {grids[i].scale.clone(), grids[i].zero_point.clone()};
    before_[i].weight = before_[i].weight.detach().clone();
  }
}

void CrossingCounter::after_step() {
  const at::NoGradGuard no_grad;
  auto after = layers_now();
  for (std::size_t i = 0; i < after.size(); ++i) after[i].grid = before_[i].grid;
  const auto changed = cuda_kernels::changed_codes(before_, after).cpu();
  for (std::size_t i = 0; i < changed_.size(); ++i)
    changed_[i] += static_cast<double>(changed[static_cast<std::int64_t>(i)].item<std::int64_t>());
  ++steps_;
}

void CrossingCounter::end_epoch() {
  if (steps_ == 0) return;
  std::vector<double> shares;
  for (std::size_t i = 0; i < changed_.size(); ++i)
    shares.push_back(changed_[i] / crossings_.sizes[i] / static_cast<double>(steps_));
  crossings_.shares.push_back(std::move(shares));
  changed_.assign(sites_.size(), 0);
  steps_ = 0;
}

}  // namespace zsq::analysis
