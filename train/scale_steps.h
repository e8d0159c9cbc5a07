// SPDX-License-Identifier: Apache-2.0
// Lets quantizers' scales learn under the student's loss (LSQ, Esser et al. 1902.08153). Adam acts
// on log(scale): a step is a relative change, a scale stays positive, and the paper's factor on the
// gradient, 1 / sqrt(n qmax), cancels. Zero points stay.
#pragma once
#include <limits>
#include <set>

#include "quant/student.h"
#include "train/optimizers.h"
#include "train/options.h"

namespace zsq::train {

// The scales that `which` names: of activations with fewer than 8 bits, and of such weights whose
// range is not computed again at each step; scales of level tables stay.
std::set<std::string> learnable_scales(const quant::Student& student, LearnableScales which);

class ScaleSteps {
 public:
  // Lets these scales require gradients for as long as it lives. Activations have scales only
  // once they are calibrated.
  ScaleSteps(const models::ParameterStore& parameters, const std::set<std::string>& names);
  ScaleSteps(const quant::Student& student, LearnableScales which)
      : ScaleSteps(student.parameters, learnable_scales(student, which)) {}
  ~ScaleSteps();
  ScaleSteps(const ScaleSteps&) = delete;
  ScaleSteps& operator=(const ScaleSteps&) = delete;

  const std::vector<at::Tensor>& scales() const { return scales_; }
  // No log(scale) ends further than `reach` from where it began.
  void step(const std::vector<at::Tensor>& gradients, double lr,
            double reach = std::numeric_limits<double>::infinity());
  NamedTensors state() const;

 private:
  std::vector<at::Tensor> scales_;
  NamedTensors logs_;
  Adam adam_;
  Tether tether_;
};

}  // namespace zsq::train
