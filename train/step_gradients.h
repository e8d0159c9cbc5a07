// SPDX-License-Identifier: Apache-2.0
// Gradients of one backward pass of a step (train/step.h).
#pragma once
#include <vector>

#include "parallel/ranks.h"

namespace zsq::train {

// In the strides of the parameters. `keep`: a part of the graph is gone back through once more.
std::vector<at::Tensor> gradients_of(const at::Tensor& loss,
                                     const std::vector<at::Tensor>& parameters, bool keep = false);

// bool []
at::Tensor any_not_finite(const std::vector<at::Tensor>& gradients);

// A mean over this rank's images as its share of the mean over the batch.
at::Tensor part_of_mean(const at::Tensor& mean, const parallel::Rows& rows);

}  // namespace zsq::train
