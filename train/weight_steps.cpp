// SPDX-License-Identifier: Apache-2.0
#include "train/weight_steps.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "cuda_kernels/inundation.h"
#include "train/published_search.h"

namespace zsq::train {

using cuda_kernels::Grid;

WeightSteps::WeightSteps(const quant::Student& student, const TrainOptions& options)
    : student_(student), options_(options), sites_(quant::weight_sites(student)) {
  for (const auto& site : sites_) {
    weights_.push_back(student.parameters.at(site.parameter));
    velocities_.push_back(at::zeros_like(weights_.back().detach()));
  }
  sums_ = at::zeros({static_cast<std::int64_t>(sites_.size()), 4}, at::kDouble);
}

at::Tensor WeightSteps::codes(std::size_t layer, const at::Tensor& weight, const Grid& grid) const {
  const auto& spec = sites_[layer].op->spec();
  return cuda_kernels::quantize(weight, grid.scale, grid.zero_point, spec.qmin, spec.qmax);
}

void WeightSteps::step(const std::vector<at::Tensor>& gradients, double factor) {
  const at::NoGradGuard no_grad;
  auto sums = sums_.accessor<double, 2>();
  for (std::size_t layer = 0; layer < sites_.size(); ++layer) {
    const auto& op = *sites_[layer].op;
    const auto& weight = weights_[layer];
    const auto grid = op.grid(weight, student_.parameters);
    const auto moved = move(layer, gradients[layer], grid, factor);
    const auto row = static_cast<std::int64_t>(layer);
    const auto n = static_cast<double>(weight.numel());
    sums[row][0] += 1;
    sums[row][1] += static_cast<double>(moved.crossings) / n;
    sums[row][3] += moved.k;
    if (op.range_every_step()) {  // codes that the next forward pass changes without any crossing
      const auto drifted =
          codes(layer, weight, op.grid(weight, student_.parameters)).ne(codes(layer, weight, grid));
      sums[row][2] += static_cast<double>(drifted.sum().item<std::int64_t>()) / n;
    }
  }
}

WeightSteps::Moved WeightSteps::move(std::size_t layer, const at::Tensor& gradient,
                                     const Grid& grid, double factor) {
  auto &weight = weights_[layer], &velocity = velocities_[layer];
  const auto& spec = sites_[layer].op->spec();
  const double lr = options_.lr * factor, target = options_.crossing_rate * factor;
  if (options_.inundation == Inundation::exact) {
    const auto result = cuda_kernels::inundate_(
        weight, velocity, gradient, grid.scale, grid.zero_point,
        {lr, options_.momentum, target, options_.k_max, options_.c_max, spec.qmin, spec.qmax});
    return {result.k, result.crossings};
  }
  velocity.mul_(options_.momentum).add_(gradient);
  const auto step = gradient.add(velocity, options_.momentum).mul_(lr);
  const auto before = codes(layer, weight, grid);
  const double k =
      options_.inundation == Inundation::published ? published_k(layer, step, target) : 1;
  weight.sub_(step, k);
  return {k, codes(layer, weight, grid).ne(before).sum().item<std::int64_t>()};
}

// Codes are taken with the ranges that the moved weights would have, as the published code does.
double WeightSteps::published_k(std::size_t layer, const at::Tensor& step, double target) const {
  const auto& weight = weights_[layer];
  const auto codes_at = [&](double k) {
    const auto moved = weight.sub(step, k);
    return codes(layer, moved, sites_[layer].op->grid(moved, student_.parameters));
  };
  const auto before = codes_at(0);
  return published_factor(
      [&](double k) { return codes_at(k).ne(before).to(at::kDouble).mean().item<double>(); },
      target);
}

NamedTensors WeightSteps::state() const {
  NamedTensors state;
  for (std::size_t layer = 0; layer < sites_.size(); ++layer) {
    state.emplace_back("velocity/" + sites_[layer].parameter, velocities_[layer]);
  }
  state.emplace_back("layer_sums", sums_);
  return state;
}

std::vector<LayerReport> WeightSteps::report() const {
  std::vector<LayerReport> layers;
  const auto sums = sums_.accessor<double, 2>();
  for (std::size_t layer = 0; layer < sites_.size(); ++layer) {
    const auto row = static_cast<std::int64_t>(layer);
    LayerReport report;
    report.name = student_.graph[sites_[layer].layer].name;
    if (const double steps = sums[row][0]; steps > 0) {
      report.crossings = sums[row][1] / steps;
      report.drift = sums[row][2] / steps;
      report.k = sums[row][3] / steps;
    }
    layers.push_back(report);
  }
  return layers;
}

}  // namespace zsq::train
