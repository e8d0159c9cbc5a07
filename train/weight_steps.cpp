// SPDX-License-Identifier: Apache-2.0
#include "train/weight_steps.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "cuda_kernels/inundation.h"
#include "quant/pair_bound.h"
#include "train/published_search.h"

namespace zsq::train {
namespace {

using cuda_kernels::changed_codes;

std::vector<double> sizes_of(const std::vector<at::Tensor>& tensors) {
  std::vector<double> sizes;
  for (const auto& tensor : tensors) sizes.push_back(static_cast<double>(tensor.numel()));
  return sizes;
}

}  // namespace

WeightSteps::WeightSteps(const quant::Student& student, const TrainOptions& options)
    : student_(student), options_(options), sites_(quant::weight_sites(student)) {
  for (const auto& site : sites_) {
    quant::require_uniform(site.op->spec().format, "gradient inundation");
    weights_.push_back(student.parameters.at(site.parameter));
  }
  if (options.optimizer == Optimizer::adam) {
    adam_ = std::make_unique<UnitAdam>(named_weights(), grid_scales());
  } else {
    for (const auto& weight : weights_) velocities_.push_back(at::zeros_like(weight.detach()));
  }
  const auto layers = std::ssize(sites_);
  sizes_ = at::tensor(sizes_of(weights_), at::kDouble).to(weights_[0].device());
  sums_ = at::zeros({layers, 4}, sizes_.options());
}

void WeightSteps::step(const std::vector<at::Tensor>& gradients, double factor) {
  const at::NoGradGuard no_grad;
  auto layers = quant::weight_layers(sites_, student_.parameters);
  const auto grids = cuda_kernels::layer_grids(layers);
  bool any_range = false;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    layers[layer].grid = grids[layer];
    any_range = any_range || sites_[layer].op->range_every_step();
  }
  const bool exact = options_.inundation == Inundation::exact;
  const auto moved =
      exact ? inundate(layers, gradients, factor) : plain_step(layers, gradients, factor);
  const auto add = [&](std::int64_t column, const at::Tensor& values) {
    sums_.select(1, column).add_(values);
  };
  sums_.select(1, 0).add_(1);
  add(1, moved.crossings.div(sizes_));
  if (any_range)  // codes that the next forward pass changes without any crossing
    add(2, changed_codes(layers, quant::weight_layers(sites_, student_.parameters)).div(sizes_));
  add(3, moved.k);
}

WeightSteps::Moved WeightSteps::inundate(const Layers& layers,
                                         const std::vector<at::Tensor>& gradients, double factor) {
  std::vector<cuda_kernels::InundationLayer> moving;
  for (std::size_t i = 0; i < layers.size(); ++i)
    moving.push_back({weights_[i], velocities_[i], gradients[i], layers[i].grid.scale,
                      layers[i].grid.zero_point, layers[i].qmin, layers[i].qmax});
  const auto result =
      cuda_kernels::inundate_(moving,
                              {options_.lr * factor, options_.momentum,
                               options_.crossing_rate * factor, options_.k_max, options_.c_max},
                              last_k_);
  last_k_ = result.k;
  return {result.k, result.crossings};
}

WeightSteps::Moved WeightSteps::plain_step(const Layers& layers,
                                           const std::vector<at::Tensor>& gradients,
                                           double factor) {
  auto before = layers;
  for (auto& layer : before) layer.weight = layer.weight.clone();
  auto k = at::ones_like(sizes_);
  if (adam_) adam_->step(gradients, options_.lr * factor);
  for (std::size_t i = 0; i < velocities_.size(); ++i) {
    velocities_[i].mul_(options_.momentum).add_(gradients[i]);
    const auto step =
        gradients[i].add(velocities_[i], options_.momentum).mul_(options_.lr * factor);
    double scaled = 1;
    if (options_.inundation == Inundation::published) {
      scaled = published_k(i, step, options_.crossing_rate * factor);
      k.select(0, static_cast<std::int64_t>(i)).fill_(scaled);
    }
    weights_[i].sub_(step, scaled);
  }
  auto after = layers;
  for (std::size_t i = 0; i < layers.size(); ++i)
    after[i].weight = quant::keep_pairs(weights_[i], layers[i].grid, sites_[i].op->spec());
  return {k, changed_codes(before, after)};
}

// Codes are taken with the ranges that the moved weights would have, as the published code does.
double WeightSteps::published_k(std::size_t layer, const at::Tensor& step, double target) const {
  const auto& weight = weights_[layer];
  const auto moved = [&](double k) {
    return Layers{quant::weight_layer(*sites_[layer].op, weight.sub(step, k), student_.parameters)};
  };
  const auto size = static_cast<double>(weight.numel());
  const auto before = moved(0);
  return published_factor(
      [&](double k) {
        return static_cast<double>(changed_codes(before, moved(k)).item<std::int64_t>()) / size;
      },
      target);
}

void WeightSteps::stop() {
  if (adam_) adam_->stop();
  for (const auto& velocity : velocities_) velocity.zero_();
}

NamedTensors WeightSteps::named_weights() const {
  NamedTensors named;
  for (std::size_t i = 0; i < weights_.size(); ++i)
    named.emplace_back(sites_[i].parameter, weights_[i]);
  return named;
}

// As they are now, of shapes that broadcast to the weights.
std::vector<at::Tensor> WeightSteps::grid_scales() const {
  std::vector<at::Tensor> scales;
  const auto grids = cuda_kernels::layer_grids(quant::weight_layers(sites_, student_.parameters));
  for (std::size_t i = 0; i < grids.size(); ++i) {
    std::vector<std::int64_t> shape(static_cast<std::size_t>(weights_[i].dim()), 1);
    shape[0] = -1;
    scales.push_back(grids[i].scale.detach().view(shape).clone());
  }
  return scales;
}

NamedTensors WeightSteps::state() const {
  NamedTensors state;
  if (adam_)
    for (const auto& [name, tensor] : adam_->state()) state.emplace_back("adam/" + name, tensor);
  for (std::size_t layer = 0; layer < velocities_.size(); ++layer)
    state.emplace_back("velocity/" + sites_[layer].parameter, velocities_[layer]);
  state.emplace_back("layer_sums", sums_);
  return state;
}

std::vector<LayerReport> WeightSteps::report() const {
  std::vector<LayerReport> layers;
  const auto on_host = sums_.cpu();
  const auto sums = on_host.accessor<double, 2>();
  for (std::size_t layer = 0; layer < sites_.size(); ++layer) {
    const auto row = static_cast<std::int64_t>(layer);
    LayerReport report;
    report.name = student_.graph[sites_[layer].layer].name;
    if (const double steps = sums[row][0]; steps > 0) {
      report.crossings = sums[row][1] / steps;
      report.range_update_flips = sums[row][2] / steps;
      report.k = sums[row][3] / steps;
    }
    layers.push_back(report);
  }
  return layers;
}

}  // namespace zsq::train
