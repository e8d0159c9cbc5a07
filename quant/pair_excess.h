// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cuda_kernels/weight_range.h"
#include "quant/student.h"

namespace zsq::quant {

// Whether nearest rounding of the weight, f32 [out, ...] on the CPU, on this grid carries a pair of
// neighbours beyond spec.pair_bound (quant/pair_bound.h). Hardly any rounded weight has one, and
// this finds out without a tensor. A weight that is not contiguous, of another type or elsewhere:
// true, as if it had.
bool may_exceed_pair_bound(const at::Tensor& weight, const cuda_kernels::Grid& grid,
                           const QuantizerSpec& spec);

}  // namespace zsq::quant
