// SPDX-License-Identifier: Apache-2.0
// Images that no network has seen, drawn by chance: shapes of all sizes, one over the other (the
// dead leaves model; Lee, Mumford and Huang, IJCV 2001), which have the spectrum and the edges of
// photographs (as pictures to learn from: arXiv 2106.05963).
#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <utility>

namespace zsq::generator {

// f32 [n, C, H, W] for shape = {C, H, W}, values within [range.first, range.second]. An image has a
// colour of its own, and 60 to 400 ellipses and rectangles: radii with density r^-3 from a smallest
// one (2 to 9 % of the side), centres uniform, colours normal about the image's, brightness falling
// evenly across each. Depends on the arguments alone.
at::Tensor draw_images(std::int64_t n, const std::array<std::int64_t, 3>& shape,
                       std::pair<double, double> range, std::uint64_t seed);

}  // namespace zsq::generator
