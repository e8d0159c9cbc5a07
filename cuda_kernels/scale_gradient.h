// SPDX-License-Identifier: Apache-2.0
// The gradient of a quantizer's step size (LSQ, Esser et al. 1902.08153, eq. 3): with
// y = fake_quant(v; scale) and the rounding held fixed,
//   dL/dscale = sum of dL/dy * { q - zero_point - v / scale   where the code q was not clamped
//                              { qmin - zero_point, qmax - zero_point   below, above
// What fake_quant sends to `scale` where it requires a gradient; bn_clip_fake_quant sends the same
// within its backward pass.
#pragma once
#include <ATen/core/Tensor.h>

#include "cuda_kernels/checks.h"

namespace zsq::cuda_kernels {

// x, dy f32 or bf16 in one memory order; the result has the scale's shape. Where dx is given, in
// that order too, it gets dy where the code of x was not clamped, else 0, in the same pass.
at::Tensor scale_gradient(const at::Tensor& x, const at::Tensor& dy, const GridTensors& grid,
                          CodeRange range, const at::Tensor& dx = {});

}  // namespace zsq::cuda_kernels
