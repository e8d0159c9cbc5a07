// SPDX-License-Identifier: Apache-2.0
// Moves the quantized weights of a student: SGD-Nesterov with gradient inundation per layer
// (arXiv 2203.17008, section 4), or Adam in scales of each weight's grid. A layer's grid is held
// fixed within a step. All layers move at once, and what is reported of them stays on their device:
// only the published search reads back.
#pragma once
#include <memory>

#include "quant/weight_layers.h"
#include "train/optimizers.h"
#include "train/options.h"
#include "train/report.h"

namespace zsq::train {

class WeightSteps {
 public:
  WeightSteps(const quant::Student& student, const TrainOptions& options);

  // `factor` multiplies lr and crossing rate.
  void step(const std::vector<at::Tensor>& gradients, double factor);

  void stop();  // forgets earlier gradients

  // In the order in which gradients are expected.
  const std::vector<at::Tensor>& weights() const { return weights_; }
  NamedTensors state() const;
  std::vector<LayerReport> report() const;

 private:
  using Layers = std::vector<cuda_kernels::QuantLayer>;
  struct Moved {
    at::Tensor k, crossings;  // [layers]; weights whose code (grid fixed) changed
  };
  Moved inundate(const Layers& layers, const std::vector<at::Tensor>& gradients, double factor);
  Moved plain_step(const Layers& layers, const std::vector<at::Tensor>& gradients, double factor);
  NamedTensors named_weights() const;
  std::vector<at::Tensor> grid_scales() const;
  double published_k(std::size_t layer, const at::Tensor& step, double target) const;

  const quant::Student& student_;
  TrainOptions options_;
  std::vector<quant::WeightSite> sites_;
  std::vector<at::Tensor> weights_, velocities_;  // no velocities with Adam
  std::unique_ptr<UnitAdam> adam_;
  at::Tensor sizes_;   // f64 [layers]: weights of each
  at::Tensor sums_;    // f64 [layers, 4]: steps, crossings, range update flips, k
  at::Tensor last_k_;  // f32 [layers], of the last inundation; undefined before
};

}  // namespace zsq::train
