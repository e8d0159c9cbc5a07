// SPDX-License-Identifier: Apache-2.0
// Lets quantizers' scales learn under the student's loss (LSQ, Esser et al. 1902.08153). Adam acts
// on log(scale): a step is a relative change, a scale stays positive, and the paper's factor on the
// gradient, 1 / sqrt(n qmax), cancels. Zero points stay.
#pragma once
#include <set>

#include "quant/student.h"
#include "train/optimizers.h"
#include "train/trainer.h"

namespace zsq::train {

// The scales that `which` names: of activations with fewer than 8 bits, and of such weights whose
// range is not taken anew at each step.
std::set<std::string> scales_that_learn(const quant::Student& student, LearnScales which);

class ScaleSteps {
 public:
  // Lets these scales require gradients until the end of its life. Activations have scales only
  // once they are calibrated.
  ScaleSteps(const models::ParameterStore& parameters, const std::set<std::string>& names);
  ScaleSteps(const quant::Student& student, LearnScales which)
      : ScaleSteps(student.parameters, scales_that_learn(student, which)) {}
  ~ScaleSteps();
  ScaleSteps(const ScaleSteps&) = delete;
  ScaleSteps& operator=(const ScaleSteps&) = delete;

  const std::vector<at::Tensor>& scales() const { return scales_; }
  void step(const std::vector<at::Tensor>& gradients, double lr);
  NamedTensors state() const;

 private:
  std::vector<at::Tensor> scales_;
  NamedTensors logs_;
  Adam adam_;
};

}  // namespace zsq::train
