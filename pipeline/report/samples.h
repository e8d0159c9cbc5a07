// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <ATen/core/Tensor.h>

#include <optional>

#include "eval/image.h"
#include "eval/preprocessing.h"

namespace zsq::pipeline {

// The first images of [N, C, H, W] side by side, 80 pixels wide at most. Without preprocessing, or
// if the network takes no colour images, the lowest value is black and the highest white. Empty (no
// pixels) if C is neither 1 nor 3.
eval::Image sample_strip(const at::Tensor& images,
                         const std::optional<eval::Preprocessing>& preprocessing);

}  // namespace zsq::pipeline
