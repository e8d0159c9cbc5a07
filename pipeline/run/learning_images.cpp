// SPDX-License-Identifier: Apache-2.0
#include "pipeline/run/learning_images.h"

#include <algorithm>
#include <utility>

#include "pipeline/images/image_job.h"

namespace zsq::pipeline {

double seconds_for_images(const Run& run) {
  return run.clock.has_budget() ? run.clock.left(1) / 4 : 0;
}

LearningImages::LearningImages(const Run& run, const LearningLimit& limit)
    : run_(run), recipe_(run.recipe), most_(limit.images) {
  if (limit.only_procedural) recipe_.images.source = procedural_source(run.teacher);
}

double LearningImages::seconds_of_new(std::int64_t images, const Pace& pace) {
  const bool are_new = std::exchange(planned_, images) != images;
  if (!are_new || run_.bank.learn.defined()) return 0;
  const double most = seconds_for_images(run_), all = seconds_of_images(recipe_, images, pace);
  return most > 0 ? std::min(most, all) : all;
}

at::Tensor LearningImages::take(WantedImages wanted) {
  wanted.images = count(wanted.images);
  const auto from = [&](const at::Tensor& bank, const WantedImages& images) {
    return calibration_set(run_.source, recipe_, bank, images, run_.observer);
  };
  if (run_.bank.learn.defined()) return from(run_.bank.learn, wanted);
  if (!made_.defined() || made_.size(0) != wanted.images) {
    made_.reset();  // before others take its place
    made_ = from({}, {.images = wanted.images, .seconds = wanted.seconds});
  }
  return from(made_, wanted);
}

}  // namespace zsq::pipeline
