// SPDX-License-Identifier: Apache-2.0
// ONNX's Resize of height and width, for every mode but those that crop (tf_crop_and_resize).
// Each axis is resampled alone: output i is sum_j M_ij input_j, M [out, in]. With o = i, s =
// output / input and the lengths n (input) and m (output), place i lies at
//   half_pixel           (o + 1/2) / s - 1/2
//   pytorch_half_pixel   the same, 0 if m = 1
//   align_corners        o (n - 1) / (m - 1), 0 if m = 1
//   asymmetric           o / s
//   half_pixel_symmetric (o + 1/2) / s - 1/2 + n / 2 (1 - m / (s n))
//   tf_half_pixel_for_nn (o + 1/2) / s
// nearest takes the place rounded as `rounding` says; linear and cubic weigh the 2 and 4 nearest by
// the triangle and by Keys' kernel with cubic_coefficient, with antialias stretched by 1 / s where
// the map shrinks; places outside repeat the border or, with exclude_outside, do not count.
// Source: the ONNX specification, Resize-19.
#pragma once
#include "models/graph.h"

namespace zsq::models {

// f32 [out, in] of one axis (0: height, 1: width).
at::Tensor interpolation_matrix(const Interpolate& op, int axis, std::int64_t in);

// f32 [N, C, H, W] -> [N, C, op.size]. Differentiable.
at::Tensor interpolate(const Interpolate& op, const at::Tensor& x);

}  // namespace zsq::models
