// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <ATen/core/Tensor.h>

namespace zsq::cuda_kernels {

// A BatchNorm in inference as x * gain + offset: gain = gamma / deviation, offset = beta - mean *
// gain, deviation = sqrt(variance + eps); [C] f32.
struct FoldedBatchNorm {
  at::Tensor gain, offset, deviation;
};
FoldedBatchNorm fold_batch_norm(const at::Tensor& gamma, const at::Tensor& beta,
                                const at::Tensor& mean, const at::Tensor& variance, double eps);

}  // namespace zsq::cuda_kernels
