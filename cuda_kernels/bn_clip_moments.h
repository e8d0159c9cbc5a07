// SPDX-License-Identifier: Apache-2.0
// A teacher's BatchNorm (inference) with the sum and the clip after it, and the batch moments of
// its input beside them (GDFQ 2003.03603 eq. 3 compares these with the running ones), in one pass.
//   u = (x - mean) / sqrt(variance + eps) * gamma + beta (+ residual),   y = clamp(u, lo, hi)
//   batch_mean_c = average over n, h, w of x,   batch_variance_c = average of (x - batch_mean_c)^2
//
// x [N, C, H, W] f32 or bf16 with at least one element per channel (the arithmetic is in f32),
// contiguous or channels_last, and y keeps layout and type; residual like x; gamma, beta, mean,
// variance, batch_mean, batch_variance [C] f32. NaN stays NaN.
//
// Gradients to x and residual, first derivatives only, in one pass: du = dL/dy where lo < u < hi,
// else 0; dL/dresidual = du;
//   dL/dx = du gamma / sqrt(variance + eps)
//         + (dL/dbatch_mean + 2 (x - batch_mean) dL/dbatch_variance) / (N H W)
#pragma once
#include <ATen/core/Tensor.h>

#include <limits>
#include <optional>

#include "cuda_kernels/folded_batch_norm.h"

namespace zsq::cuda_kernels {

struct BnClipMomentsArgs {
  double eps = 1e-5;
  float lo = -std::numeric_limits<float>::infinity(), hi = std::numeric_limits<float>::infinity();
};

struct BnClipMoments {
  at::Tensor y, batch_mean, batch_variance;
};

BnClipMoments bn_clip_moments(const at::Tensor& x, const std::optional<at::Tensor>& residual,
                              const at::Tensor& gamma, const at::Tensor& beta,
                              const at::Tensor& mean, const at::Tensor& variance,
                              const BnClipMomentsArgs& args);
// The same with the BatchNorm folded beforehand, as that of a teacher never changes; args.eps is
// in it.
BnClipMoments bn_clip_moments(const at::Tensor& x, const std::optional<at::Tensor>& residual,
                              const FoldedBatchNorm& batch_norm, const at::Tensor& mean,
                              const BnClipMomentsArgs& args);

}  // namespace zsq::cuda_kernels
