// SPDX-License-Identifier: Apache-2.0
// Rules for the grids of weights: a scale and a zero point for each row of f32 [C, n]. Where
// spec.pair_bound is set (quant/pair_bound.h), the first half of a row holds the first neighbours
// and the second half the second ones.
#pragma once
#include "cuda_kernels/weight_range.h"
#include "quant/student.h"

namespace zsq::quant {

// From the smallest and the largest weight; wider where a pair would be beyond its bound.
cuda_kernels::Grid min_max_grid(const at::Tensor& rows, const QuantizerSpec& spec);
// Of the ranges (lo, hi) = r * (min, max), r in {1, 0.99, ..., 0.3}, that with the smallest squared
// error of fake-quantization, where pairs that are beyond their bound give way; min and max are
// those of min_max_grid(). (Banner et al. 1810.05723 motivates clipping; search as in LAPQ/BRECQ
// initialisation).
cuda_kernels::Grid mse_grid(const at::Tensor& rows, const QuantizerSpec& spec);

}  // namespace zsq::quant
