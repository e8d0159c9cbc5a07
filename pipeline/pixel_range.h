// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "eval/preset.h"
#include "train/make_images.h"

namespace zsq::pipeline {

// Holds the images to what an 8-bit image can be after this preprocessing; Error(usage) where the
// network does not take three channels.
void hold_to_pixels(train::ImageJob& job, const eval::Preset& preset);

}  // namespace zsq::pipeline
