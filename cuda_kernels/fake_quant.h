// SPDX-License-Identifier: Apache-2.0
// Uniform affine fake-quantization with ONNX semantics (method: Jacob et al. 1712.05877, eq. 1).
//   q = clamp(round_half_even(x / scale) + zero_point, qmin, qmax),   y = (q - zero_point) * scale
//
// x any shape, f32 or bf16 (codes are worked out in f32; y is then rounded to bf16), the memory
// format is kept; scale > 0 and zero_point (integer-valued) both f32:
// [] per tensor, or [C] per channel along dimension 0 of x. x / scale is a true division.
// Infinities clamp, NaN stays NaN.
//
// Surrogate gradient, first derivatives only: dL/dx = dL/dy inside the range and 0 if the code
// was clamped ("clipped"), or dL/dy everywhere ("pass_through", as the published zero-shot code
// does it). dL/dscale is that of scale_gradient.h; zero_point gets none.
#pragma once
#include <ATen/core/Tensor.h>

namespace zsq::cuda_kernels {

enum class Surrogate { pass_through, clipped };

at::Tensor fake_quant(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& zero_point,
                      std::int64_t qmin, std::int64_t qmax, Surrogate surrogate);

// The codes q themselves, int32, same shape and memory format as x. NaN has no code:
// Error(numeric_failure).
at::Tensor quantize(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& zero_point,
                    std::int64_t qmin, std::int64_t qmax);

}  // namespace zsq::cuda_kernels
