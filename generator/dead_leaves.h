// SPDX-License-Identifier: Apache-2.0
// Images that no network has seen, procedurally generated: shapes of all sizes, one over the other
// (the dead leaves model; Lee, Mumford and Huang, IJCV 2001), which have the spectrum and the edges
// of photographs (as pictures to learn from: arXiv 2106.05963).
#pragma once
#include "generator/canvas.h"

namespace zsq::generator {

// 60 to 400 ellipses and rectangles: radii with density r^-3 from a smallest one (2 to 9 % of the
// side), centres uniform, colours normal about the image's and more alike in hue than in
// brightness, which falls evenly across each.
void paint_dead_leaves(Canvas& canvas);

// f32 [n, C, H, W] for shape = {C, H, W}: images first to first + n - 1 of a seed, values 0 to 1.
at::Tensor dead_leaves_images(std::int64_t first, std::int64_t n,
                              const std::array<std::int64_t, 3>& shape, std::uint64_t seed);

}  // namespace zsq::generator
