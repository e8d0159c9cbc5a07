// SPDX-License-Identifier: Apache-2.0
#include "pipeline/round_weights.h"

#include "quant/hessian.h"
#include "quant/ranges.h"

namespace zsq::pipeline {
namespace {

constexpr std::int64_t kBatch = 16;

}  // namespace

void round_weights(const models::Model& teacher, quant::Student& student, const Recipe& recipe,
                   const StartImages& bank, Observer& observer) {
  const auto images =
      start_images(teacher, recipe, bank, {.images = recipe.quantize.hessian.images}, observer)
          .learn;
  quant::calibrate(student, images, kBatch);
  observer.on_message(LogLevel::info,
                      "rounding weights on " + std::to_string(images.size(0)) + " images");
  quant::round_weights_by_hessian({.teacher = teacher,
                                   .student = student,
                                   .images = images,
                                   .batch_size = kBatch,
                                   .memory = recipe.reconstruct.memory,
                                   .seed = static_cast<std::uint64_t>(recipe.process.seed)},
                                  observer);
}

}  // namespace zsq::pipeline
