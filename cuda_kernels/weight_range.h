// SPDX-License-Identifier: Apache-2.0
// Ranges of a tensor, and the scale and zero point that cover them.
#pragma once
#include <ATen/core/Tensor.h>

#include <utility>

namespace zsq::cuda_kernels {

// Smallest and largest value per row of dimension 0: x [C, ...] f32 -> two [C] f32. No gradient.
std::pair<at::Tensor, at::Tensor> channel_min_max(const at::Tensor& x);

// Asymmetric: the range is widened to hold 0, scale = (hi - lo) / (qmax - qmin), zero_point =
// clamp(qmin - round_half_even(lo / scale), qmin, qmax). Symmetric: zero_point = 0 and
// scale = max(|lo| / -qmin, |hi| / qmax). A range of zero width gets scale 1 (all codes are the zero
// point). lo, hi f32 of one shape; scale and zero_point f32 of that shape.
struct Grid {
  at::Tensor scale, zero_point;
};
Grid grid_from_range(const at::Tensor& lo, const at::Tensor& hi, std::int64_t qmin,
                     std::int64_t qmax, bool symmetric);

}  // namespace zsq::cuda_kernels
