// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <ATen/core/Tensor.h>

#include <span>

#include "eval/image.h"

namespace zsq::eval {

// Crop and resize to [size, size]. `name` is for the error where the preset neither crops nor
// resizes and the image has another size.
Image fit(const Image& image, const Preset& preset, const std::string& name);

// Pixels [n, 3] to planes [3, n], x = (pixel / 255 - mean) / std.
void normalize(std::span<const std::uint8_t> pixels, const Preset& preset, float* planes);

// fit(), then normalize(): f32 [3, size, size].
at::Tensor preprocess(const Image& image, const Preset& preset, const std::string& name);

// The way back: f32 [3, height, width] as a network takes it, to the nearest pixel values.
Image to_pixels(const at::Tensor& image, const Preset& preset);

}  // namespace zsq::eval
