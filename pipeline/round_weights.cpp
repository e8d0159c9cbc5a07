// SPDX-License-Identifier: Apache-2.0
#include "pipeline/round_weights.h"

#include <algorithm>
#include <utility>

#include "core/seed.h"
#include "generator/draw_images.h"
#include "quant/hessian.h"
#include "quant/ranges.h"

namespace zsq::pipeline {
namespace {

constexpr std::int64_t kBatch = 16;

at::Tensor images_for(const models::Model& teacher, const Recipe& recipe, const StartImages& bank,
                      Observer& observer) {
  const QuantOptions& q = recipe.quantize;
  if (!q.hessian.drawn) {
    Recipe wanted = recipe;
    wanted.reconstruct.images = q.hessian.images;
    wanted.reconstruct.views = 1;
    return start_images(teacher, wanted, bank, 0, observer).learn;
  }
  const bool known = q.image_lo < q.image_hi;
  return generator::draw_images(
             q.hessian.images, teacher.graph.input_shape,
             known ? std::pair{q.image_lo, q.image_hi} : std::pair{-2.0, 2.0},
             stream_seed(static_cast<std::uint64_t>(recipe.process.seed), "drawn images", 0))
      .to(teacher.parameters.at(teacher.parameters.names().front()).device());
}

}  // namespace

void round_weights(const models::Model& teacher, quant::Student& student, const Recipe& recipe,
                   const StartImages& bank, Observer& observer) {
  const auto images = images_for(teacher, recipe, bank, observer);
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
