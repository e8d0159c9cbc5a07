// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "pipeline/images/calibration_set.h"
#include "pipeline/stages/prepare.h"

namespace zsq::pipeline {

// Images that the stages of a run learn from: of its bank, or made by generate.images and kept
// until a stage wants another number of them.
class LearningImages {
 public:
  // Keeps a reference.
  explicit LearningImages(const Run& run) : run_(run) {}

  at::Tensor take(const WantedImages& wanted);

 private:
  const Run& run_;
  at::Tensor made_;
};

}  // namespace zsq::pipeline
