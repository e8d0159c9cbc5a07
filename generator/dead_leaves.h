// SPDX-License-Identifier: Apache-2.0
// Images that no network has seen, procedurally generated: shapes of all sizes, one over the other
// (the dead leaves model; Lee, Mumford and Huang, IJCV 2001), which have the spectrum and the edges
// of photographs (as pictures to learn from: arXiv 2106.05963).
#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

namespace zsq::generator {

// f32 [n, C, H, W] for shape = {C, H, W}: images first to first + n - 1 of a seed, values 0 to 1.
// An image has a brightness of its own and, near grey, a colour; and 60 to 400 ellipses and
// rectangles: radii with density r^-3 from a smallest one (2 to 9 % of the side), centres uniform,
// colours normal about the image's and more alike in hue than in brightness, which falls evenly
// across each. Each bears a piece of the image's texture, noise with
// amplitude frequency^-a, a from 0.8 to 1.6, at a contrast of its own: deviation 0.02 to 0.1.
at::Tensor dead_leaves_images(std::int64_t first, std::int64_t n,
                              const std::array<std::int64_t, 3>& shape, std::uint64_t seed);

}  // namespace zsq::generator
