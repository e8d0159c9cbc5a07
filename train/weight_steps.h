// SPDX-License-Identifier: Apache-2.0
// Moves the quantized weights of a student: SGD-Nesterov with gradient inundation per layer
// (arXiv 2203.17008, section 4). A layer's grid is held fixed within a step.
#pragma once
#include "quant/student.h"
#include "train/optimizers.h"
#include "train/trainer.h"

namespace zsq::train {

class WeightSteps {
 public:
  WeightSteps(const quant::Student& student, const TrainOptions& options);

  // `factor` multiplies lr and crossing rate.
  void step(const std::vector<at::Tensor>& gradients, double factor);

  // In the order in which gradients are expected.
  const std::vector<at::Tensor>& weights() const { return weights_; }
  NamedTensors state() const;
  std::vector<LayerReport> report() const;

 private:
  struct Moved {
    double k = 1;
    std::int64_t crossings = 0;
  };
  Moved move(std::size_t layer, const at::Tensor& gradient, const cuda_kernels::Grid& grid,
             double factor);
  double published_k(std::size_t layer, const at::Tensor& step, double target) const;
  at::Tensor codes(std::size_t layer, const at::Tensor& weight,
                   const cuda_kernels::Grid& grid) const;

  const quant::Student& student_;
  TrainOptions options_;
  std::vector<quant::WeightSite> sites_;
  std::vector<at::Tensor> weights_, velocities_;
  at::Tensor sums_;  // f64 [layers, 4] on the host: steps, crossings, drift, k
};

}  // namespace zsq::train
