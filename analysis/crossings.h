// SPDX-License-Identifier: Apache-2.0
// How many codes a training step changes, layer by layer and epoch by epoch (AIT 2203.17008,
// section 3.3). The grid of a step is that before it, so that a range which moves does not count.
#pragma once
#include <string>
#include <vector>

#include "quant/weight_layers.h"

namespace zsq::analysis {

struct Crossings {
  std::vector<std::string> layers;
  std::vector<double> sizes;                // weights of each layer
  std::vector<std::vector<double>> shares;  // [epoch][layer], of a layer's codes, per step
  double mean_share() const;                // of all codes, over all steps
};

class CrossingCounter {
 public:
  explicit CrossingCounter(const quant::Student& student);

  // Around each step.
  void before_step();
  void after_step();
  // The steps since the last call are one epoch; nothing if there were none.
  void end_epoch();

  const Crossings& crossings() const { return crossings_; }

 private:
  std::vector<cuda_kernels::QuantLayer> layers_now() const;

  const quant::Student& student_;
  std::vector<quant::WeightSite> sites_;
  std::vector<cuda_kernels::QuantLayer> before_;
  std::vector<double> changed_;
  std::int64_t steps_ = 0;
  Crossings crossings_;
};

}  // namespace zsq::analysis
