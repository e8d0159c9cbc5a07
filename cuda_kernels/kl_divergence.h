// SPDX-License-Identifier: Apache-2.0
// Temperature-scaled KL divergence straight from logits (Hinton et al. 1503.02531; AIT eq. 4):
//   L = tau^2 * sum_n sum_c p_nc (log p_nc - log s_nc) / divisor
//   p = softmax(teacher / tau),  s = softmax(student / tau)
//
// student, teacher [N, C] f32; scalar f32. Gradient to the student only, first derivatives only:
//   dL/dstudent = tau * (s - p) / divisor
//
// At a large tau the sum is a small difference of large terms: it is computed in double, or in a
// form without the difference. Either way the result is good to a few units of float's last place.
#pragma once
#include <ATen/core/Tensor.h>

namespace zsq::cuda_kernels {

at::Tensor kl_divergence(const at::Tensor& student, const at::Tensor& teacher, double tau,
                         double divisor);

}  // namespace zsq::cuda_kernels
