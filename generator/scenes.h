// SPDX-License-Identifier: Apache-2.0
// Images for networks that look for things among others: detectors, heat maps, segmentation. Dead
// leaves have no object in front of anything, no parts of one thing and no text, so that such a
// network finds nothing on them, and nothing can be learnt from what it says.
#pragma once
#include "generator/canvas.h"

namespace zsq::generator {

// Objects on a background, which is plain, a few soft blots or many leaves. 1 to 9 objects with
// radii of 4 to 45 % of the side, their logarithm uniform: a smooth outline, most alike on both
// sides of an upright axis, about half with a rim, 0 to 6 parts (in pairs on both sides, some with
// a part inside). In two of five images text.
void paint_objects(Canvas& canvas);

// f32 [n, C, H, W] for shape = {C, H, W}: images first to first + n - 1 of a seed, values 0 to 1.
// Every second one, from image 1 on, is of objects, the others are dead leaves.
at::Tensor scene_images(std::int64_t first, std::int64_t n,
                        const std::array<std::int64_t, 3>& shape, std::uint64_t seed);

}  // namespace zsq::generator
