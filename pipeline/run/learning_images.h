// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <limits>
#include <utility>

#include "pipeline/images/calibration_set.h"
#include "pipeline/run/prepare.h"

namespace zsq::pipeline {

// Images that the stages of a run learn from: of its bank, or made by generate.images and kept
// until a stage wants another number of them.
class LearningImages {
 public:
  // Keeps a reference. No stage gets more than `most` images.
  explicit LearningImages(const Run& run,
                          std::int64_t most = std::numeric_limits<std::int64_t>::max())
      : run_(run), most_(most) {}

  // What a stage gets that wants `images` of them.
  std::int64_t count(std::int64_t images) const {
    return std::min({images, most_, run_.bank.learn.defined() ? run_.bank.learn.size(0) : most_});
  }
  at::Tensor take(WantedImages wanted);
  // For a plan, stage by stage: whether these are others than the stage before learns from.
  bool are_new(std::int64_t images) { return std::exchange(planned_, images) != images; }

 private:
  const Run& run_;
  std::int64_t most_, planned_ = 0;
  at::Tensor made_;
};

}  // namespace zsq::pipeline
