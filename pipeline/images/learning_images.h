// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <utility>

#include "pipeline/images/calibration_set.h"
#include "pipeline/stages/prepare.h"

namespace zsq::pipeline {

// Images that the stages of a run learn from: of its bank, or made. Without a limit on time, made
// ones are kept for a later stage that wants as many of the same source.
class LearningImages {
 public:
  // Keeps a reference.
  explicit LearningImages(const Run& run) : run_(run) {}

  at::Tensor take(const WantedImages& wanted, ImageSource source);
  // By generate.images.source.
  at::Tensor take(const WantedImages& wanted) { return take(wanted, run_.recipe.images.source); }

 private:
  const Run& run_;
  std::map<std::pair<ImageSource, std::int64_t>, at::Tensor> made_;
};

}  // namespace zsq::pipeline
