// SPDX-License-Identifier: Apache-2.0
#include "pipeline/image_job.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>

#include "core/error.h"
#include "pipeline/session.h"

namespace zsq::pipeline {
namespace {

// Values of pixels 0 and 255.
at::Tensor pixel_value(const eval::Preset& preset, double share) {
  std::vector<double> values;
  for (std::size_t c = 0; c < preset.mean.size(); ++c)
    values.push_back((share - preset.mean[c]) / preset.std[c]);
  return at::tensor(values, at::kFloat);
}

}  // namespace

train::ImageJob image_job(const models::Model& teacher, const Recipe& recipe, std::int64_t images) {
  train::ImageJob job{teacher, recipe.images, images,
                      static_cast<std::uint64_t>(recipe.process.seed)};
  if (recipe.data.preset.empty()) return job;
  const eval::Preset& preset = require_preset(recipe.data.preset);
  const std::int64_t channels = teacher.graph.input_shape[0];
  if (channels != 3)
    throw Error(ErrorCode::usage, "the preset '" + preset.name +
                                      "' is of images with 3 channels, the network takes " +
                                      std::to_string(channels));
  job.lowest = pixel_value(preset, 0);
  job.highest = pixel_value(preset, 1);
  return job;
}

at::Tensor made_images(const train::ImageJob& job, Observer& observer) {
  std::vector<at::Tensor> batches;
  train::make_images(job, observer,
                     [&](const train::MadeImages& made) { batches.push_back(made.images); });
  return at::cat(batches);
}

}  // namespace zsq::pipeline
