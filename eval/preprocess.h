// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <ATen/core/Tensor.h>

#include "eval/image.h"

namespace zsq::eval {

// Crop, resize and normalise: f32 [3, size, size]. `name` is for the error where the preset neither
// crops nor resizes and the image has another size.
at::Tensor preprocess(const Image& image, const Preset& preset, const std::string& name);

}  // namespace zsq::eval
