// SPDX-License-Identifier: Apache-2.0
#include "pipeline/pixel_range.h"

#include <ATen/ops/tensor.h>

#include "core/error.h"

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

void hold_to_pixels(train::ImageJob& job, const eval::Preset& preset) {
  const std::int64_t channels = job.teacher.graph.input_shape[0];
  if (channels != 3)
    throw Error(ErrorCode::usage, "the preset '" + preset.name +
                                      "' is of images with 3 channels, the network takes " +
                                      std::to_string(channels));
  job.lowest = pixel_value(preset, 0);
  job.highest = pixel_value(preset, 1);
}

}  // namespace zsq::pipeline
