// SPDX-License-Identifier: Apache-2.0
// Rules for the grids of weights: a scale and a zero point for each row of f32 [C, n].
#pragma once
#include "cuda_kernels/weight_range.h"
#include "quant/student.h"

namespace zsq::quant {

// From the smallest and the largest weight.
cuda_kernels::Grid min_max_grid(const at::Tensor& rows, const QuantizerSpec& spec);
// Of the ranges (lo, hi) = r * (min, max), r in {1, 0.99, ..., 0.3}, that with the smallest squared
// error of fake-quantization (Banner et al. 1810.05723 motivates clipping; search as in LAPQ/BRECQ
// initialisation).
cuda_kernels::Grid mse_grid(const at::Tensor& rows, const QuantizerSpec& spec);

}  // namespace zsq::quant
