// SPDX-License-Identifier: Apache-2.0
#include "pipeline/run/reparametrize.h"

#include "core/seed.h"
#include "pipeline/images/image_job.h"
#include "quant/calibration/rotate_bottlenecks.h"
#include "quant/calibration/split_channels.h"

namespace zsq::pipeline {
namespace {

constexpr std::int64_t kImagesAtOnce = 8;

at::Tensor images_for(const models::Model& teacher, const Recipe& recipe, std::int64_t images,
                      const char* purpose) {
  const auto seed = static_cast<std::uint64_t>(recipe.process.seed);
  return dead_leaves(teacher, recipe, 0, images, stream_seed(seed, purpose, 0));
}

}  // namespace

models::Model reparametrized(models::Model teacher, const Recipe& recipe) {
  const QuantOptions& o = recipe.quantize;
  if (o.activations.num_bits >= 8) return teacher;
  if (o.split_channels > 0 && quant::has_splittable_channels(teacher, o)) {
    const auto images = images_for(teacher, recipe, o.split_channels, "split");
    teacher = quant::split_channels(std::move(teacher), o, images, kImagesAtOnce,
                                    static_cast<std::uint64_t>(recipe.process.seed));
  }
  if (o.rotation > 0 && quant::has_bottlenecks(teacher)) {
    const auto images = images_for(teacher, recipe, o.rotation, "rotation");
    teacher = quant::rotate_bottlenecks(std::move(teacher), images, kImagesAtOnce);
  }
  return teacher;
}

}  // namespace zsq::pipeline
