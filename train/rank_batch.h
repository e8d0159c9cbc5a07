// SPDX-License-Identifier: Apache-2.0
// What couples the images of a batch that several ranks share. The gradient of the whole loss is
// the sum over the ranks of what each gets by going back through its own images.
#pragma once
#include "cuda_kernels/bn_leaky_relu.h"
#include "losses/losses.h"
#include "parallel/ranks.h"

namespace zsq::train {

// For the generator's BatchNorm.
cuda_kernels::BatchPart part_of(parallel::Communicator& ranks, const parallel::Rows& rows);

// Batch moments of the whole batch from those of each rank's `rows`, in one collective:
//   mu = sum_r n_r mu_r / N,   var = sum_r n_r (var_r + mu_r^2) / N - mu^2
// Their gradient goes to the moments of this rank alone.
std::vector<losses::Moments> moments_of_batch(parallel::Communicator& ranks,
                                              const parallel::Rows& rows,
                                              std::vector<losses::Moments> own);

}  // namespace zsq::train
