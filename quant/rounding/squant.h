// SPDX-License-Identifier: Apache-2.0
// Rounding that keeps the sums of the errors small, by SQuant (arXiv 2202.07471, section 3): no
// data, no gradient.
//
// With u = w / scale and e = code - zero_point - u the error of a weight in steps, each code is one
// of the two neighbours of u (within [qmin, qmax]), e in (-1, 1). From the nearest codes,
//   K: per kernel (the kh x kw weights between one input and one output channel) the fewest codes
//      are flipped to their other neighbour that bring |sum e| to at most 1/2; those with the
//      largest errors, so that sum e^2 is the smallest under that condition.
//   C: per output channel the fewest kernels are moved by one more flip that bring the |sum e| of
//      the channel to at most 1/2; those with the largest sums, each at its largest error, so that
//      the squares of the kernels' sums, and then sum e^2, are the smallest under that condition.
// After C a kernel that it moved has 1/2 <= |sum e| <= 1: sums of kernels change by whole steps, so
// kernels and channel cannot all lie within 1/2. A kernel of one weight (1x1, Linear) is its
// own sum and K does nothing; a channel of one kernel (depthwise) leaves C nothing to do. Errors of
// weights outside the grid count in the sums; where too few codes can be flipped against them, the
// sum is brought as near as the rest allows. Equal errors: the first in memory.
#pragma once
#include "cuda_kernels/weight_range.h"
#include "quant/student.h"

namespace zsq::quant {

// weight f32 [out, in] or [out, in, kh, kw]; grid of one or of `out` scales. Returns the weights
// that plain rounding turns into the chosen codes: a flipped weight is mirrored at the threshold
// that it crosses (but kept 1/64 step away from it), all others stay as they are.
//
// keep_range: for grids computed again from the returned weights: the smallest and largest weight
// of each grid do not move, and none passes them, so that the grid stays the same.
at::Tensor squant(const at::Tensor& weight, const cuda_kernels::Grid& grid,
                  const QuantizerSpec& spec, bool keep_range);

// All quantized weights of a student.
void round_weights_by_squant(Student& student);

}  // namespace zsq::quant
