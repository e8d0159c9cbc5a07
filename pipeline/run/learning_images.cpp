// SPDX-License-Identifier: Apache-2.0
#include "pipeline/run/learning_images.h"

namespace zsq::pipeline {

at::Tensor LearningImages::take(WantedImages wanted) {
  wanted.images = count(wanted.images);
  const auto from = [&](const at::Tensor& bank, const WantedImages& images) {
    return calibration_set(run_.source, run_.recipe, bank, images, run_.observer);
  };
  if (run_.bank.learn.defined()) return from(run_.bank.learn, wanted);
  if (!made_.defined() || made_.size(0) != wanted.images) {
    made_.reset();  // before others take its place
    made_ = from({}, {.images = wanted.images, .seconds = wanted.seconds});
  }
  return from(made_, wanted);
}

}  // namespace zsq::pipeline
