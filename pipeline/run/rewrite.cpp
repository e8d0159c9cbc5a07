// SPDX-License-Identifier: Apache-2.0
#include "pipeline/run/rewrite.h"

#include "core/seed.h"
#include "pipeline/images/image_job.h"
#include "quant/rewrites/equalize.h"
#include "quant/rewrites/rotate_bottlenecks.h"
#include "quant/rewrites/split_channels.h"

namespace zsq::pipeline {
namespace {

bool few_bits(const Recipe& recipe) { return recipe.quantize.activations.num_bits < 8; }

at::Tensor images_for(const models::Model& teacher, const Recipe& recipe, std::int64_t images,
                      const char* purpose) {
  const auto seed = static_cast<std::uint64_t>(recipe.process.seed);
  return procedural_images(teacher, recipe, 0, images, stream_seed(seed, purpose, 0));
}

}  // namespace

bool splits_channels(const models::Model& network, const Recipe& recipe) {
  const QuantOptions& o = recipe.quantize;
  return few_bits(recipe) && o.split_channels > 0 && quant::has_splittable_channels(network, o);
}

bool rotates_bottlenecks(const models::Model& network, const Recipe& recipe) {
  return few_bits(recipe) && recipe.quantize.rotation > 0 && quant::has_bottlenecks(network);
}

models::Model rewritten(models::Model network, const Recipe& recipe) {
  const QuantOptions& o = recipe.quantize;
  if (splits_channels(network, recipe)) {
    const auto images = images_for(network, recipe, o.split_channels, "split");
    network = quant::split_channels(std::move(network), o, images, o.rewrite_batch_size,
                                    static_cast<std::uint64_t>(recipe.process.seed));
  }
  if (rotates_bottlenecks(network, recipe)) {
    const auto images = images_for(network, recipe, o.rotation, "rotation");
    network = quant::rotate_bottlenecks(std::move(network), images, o.rewrite_batch_size);
  }
  return quant::equalize(std::move(network), o);
}

}  // namespace zsq::pipeline
