// SPDX-License-Identifier: Apache-2.0
#include "pipeline/rotation.h"

#include "core/seed.h"
#include "pipeline/images/image_job.h"
#include "quant/calibration/rotate_bottlenecks.h"

namespace zsq::pipeline {
namespace {

constexpr std::int64_t kBatch = 8;

}  // namespace

models::Model rotated_where_asked(models::Model teacher, const Recipe& recipe) {
  const QuantOptions& o = recipe.quantize;
  if (o.rotation == 0 || o.activations.num_bits >= 8 || !quant::has_bottlenecks(teacher))
    return teacher;
  const auto seed = static_cast<std::uint64_t>(recipe.process.seed);
  const auto images = dead_leaves(teacher, recipe, 0, o.rotation, stream_seed(seed, "rotation", 0));
  return quant::rotate_bottlenecks(std::move(teacher), images, kBatch);
}

}  // namespace zsq::pipeline
