// SPDX-License-Identifier: Apache-2.0
#include "pipeline/images/learning_images.h"

namespace zsq::pipeline {

at::Tensor LearningImages::take(const WantedImages& wanted, ImageSource source) {
  Recipe recipe = run_.recipe;
  recipe.images.source = source;
  const auto from = [&](const at::Tensor& bank, const WantedImages& images) {
    return calibration_set(run_.teacher, recipe, bank, images, run_.observer);
  };
  if (run_.bank.learn.defined() || wanted.seconds > 0) return from(run_.bank.learn, wanted);
  at::Tensor& made = made_[{source, wanted.images}];
  if (!made.defined()) made = from({}, {.images = wanted.images});
  return from(made, wanted);
}

}  // namespace zsq::pipeline
