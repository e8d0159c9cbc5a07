// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <limits>
#include <utility>

#include "pipeline/images/calibration_set.h"
#include "pipeline/run/pace.h"
#include "pipeline/run/prepare.h"

namespace zsq::pipeline {

// What a time budget leaves to learn from.
struct LearningLimit {
  std::int64_t images = std::numeric_limits<std::int64_t>::max();
  bool only_procedural = false;  // which take no time, instead of the recipe's source
};

// What a stage that makes images may take for it: a quarter of what a time budget leaves; 0:
// any time.
double seconds_for_images(const Run& run);

// Images that the stages of a run learn from: of its bank, or made by generate.images and kept
// until a stage wants another number of them.
class LearningImages {
 public:
  // Keeps a reference to the run.
  explicit LearningImages(const Run& run, const LearningLimit& limit = {});

  // What a stage gets that wants `images` of them.
  std::int64_t count(std::int64_t images) const {
    return std::min({images, most_, run_.bank.learn.defined() ? run_.bank.learn.size(0) : most_});
  }
  at::Tensor take(WantedImages wanted);
  // For a plan, stage by stage: seconds to make so many; 0 of those of a bank, and where the stage
  // before learns from the same.
  double seconds_of_new(std::int64_t images, const Pace& pace);

 private:
  const Run& run_;
  Recipe recipe_;  // as the images are made
  std::int64_t most_, planned_ = 0;
  at::Tensor made_;
};

}  // namespace zsq::pipeline
