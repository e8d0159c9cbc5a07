// SPDX-License-Identifier: Apache-2.0
// Ranges of a tensor, and the scale and zero point that cover them.
#pragma once
#include <ATen/core/Tensor.h>

#include <utility>

namespace zsq::cuda_kernels {

// Smallest and largest value per row of dimension 0: x [C, ...] f32 -> two [C] f32, NaN for a row
// that holds one. Rows have at least one element. No gradient.
std::pair<at::Tensor, at::Tensor> channel_min_max(const at::Tensor& x);

// The range is first widened to hold 0. Asymmetric: scale = (hi - lo) / (qmax - qmin), zero_point =
// clamp(qmin - round_half_even(lo / scale), qmin, qmax). Symmetric, with qmin <= 0 < qmax:
// zero_point = 0 and scale = max(|lo| / -qmin, |hi| / qmax), without the first where qmin = 0. A
// range of zero width, or so narrow that the scale is no normal float, gets scale 1 (all codes are
// the zero point). A range that is not finite gets NaN for both, so that all that is quantized with
// it is NaN. lo, hi f32 of one shape; scale and zero_point f32 of that shape.
struct Grid {
  at::Tensor scale, zero_point;
};
Grid grid_from_range(const at::Tensor& lo, const at::Tensor& hi, std::int64_t qmin,
                     std::int64_t qmax, bool symmetric);

}  // namespace zsq::cuda_kernels
