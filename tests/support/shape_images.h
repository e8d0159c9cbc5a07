// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace zsq::test {

// Circle, ring, square, frame, triangle, plus, x and stripes, of random place, size and colour,
// with Gaussian noise. images f32 [n, 3, 16, 16] in [-2, 2] (pixel 0..1, mean 0.5, deviation 0.25);
// labels int64 [n], every class equally often. Depends on (n, seed) only.
struct ShapeImages {
  at::Tensor images, labels;
};
constexpr std::int64_t kShapeClasses = 8, kShapeSize = 16;
ShapeImages draw_shapes(std::int64_t n, std::uint64_t seed);

}  // namespace zsq::test
