// SPDX-License-Identifier: Apache-2.0
#include "pipeline/round_weights.h"

#include <algorithm>
#include <utility>

#include "quant/hessian.h"
#include "quant/ranges.h"

namespace zsq::pipeline {
namespace {

constexpr std::int64_t kBatch = 16;

}  // namespace

void round_weights(const models::Model& teacher, quant::Student& student, const Recipe& recipe,
                   const StartImages& bank, Observer& observer) {
  Recipe wanted_images = recipe;
  wanted_images.reconstruct.images = recipe.quantize.hessian.images;
  wanted_images.reconstruct.views = 1;
  wanted_images.process.agreement_images = 0;
  const auto images = start_images(teacher, wanted_images, bank, 0, observer).learn;
  auto& wanted = student.options.activations.calibration_images;
  const auto asked = std::exchange(wanted, std::min(wanted, images.size(0)));
  std::int64_t first = 0;
  quant::calibrate(student, [&] {
    const auto n = std::min(kBatch, images.size(0) - first);
    return images.narrow(0, std::exchange(first, first + n), n);
  });
  wanted = asked;
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
