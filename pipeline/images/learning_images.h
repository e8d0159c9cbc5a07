// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>

#include "pipeline/images/calibration_set.h"
#include "pipeline/stages/prepare.h"

namespace zsq::pipeline {

// Images that the stages of a run learn from: of its bank, or made by generate.images and kept for
// a later stage that wants as many.
class LearningImages {
 public:
  // Keeps a reference.
  explicit LearningImages(const Run& run) : run_(run) {}

  at::Tensor take(const WantedImages& wanted);

 private:
  const Run& run_;
  std::map<std::int64_t, at::Tensor> made_;  // by their number
};

}  // namespace zsq::pipeline
