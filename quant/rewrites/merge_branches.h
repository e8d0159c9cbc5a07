// SPDX-License-Identifier: Apache-2.0
// Branches that are added before an activation, each a BatchNorm of a convolution of one and the
// same tensor or of that tensor itself (RepVGG, arXiv 2101.03697; MobileOne, 2206.04040), become
// one convolution with one BatchNorm: convolutions are linear, so with the BatchNorms' factors a_b
// and constants c_b
//   sum_b (a_b (W_b x) + c_b) = (sum_b a_b W_b) x + sum_b c_b,
// each kernel W_b with zeros around it to the size of the largest. Runtimes then have one layer for
// up to six, and the sums of quantized branches go.
//
// The new BatchNorm keeps what the statistics say: beta is the sum of the betas, gamma^2 the
// variance of the sum. Branches of one tensor are not independent. Their correlations follow from
// the weights and the variances s_c^2 of the channels that they read, values of which at two places
// of a window are correlated by r (quant/data_free/rows.h):
//   cov(b, b') = sum_c s_c^2 ((1 - r) sum_k A_bck A_b'ck + r sum_k A_bck sum_k A_b'ck),  A = a W
// and their variances are those of their BatchNorm layers.
#pragma once
#include "models/graph.h"

namespace zsq::quant {

// The merged convolution has the name of the branch with the largest kernel; what the sum was
// called is now the BatchNorm, or a sum with what could not be merged. Which branches are merged:
// quant/rewrites/parallel_branches.h.
models::Model merge_branches(models::Model model);

}  // namespace zsq::quant
