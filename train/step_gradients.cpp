// SPDX-License-Identifier: Apache-2.0
#include "train/step_gradients.h"

#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/stack.h>
#include <torch/csrc/autograd/autograd.h>

namespace zsq::train {

std::vector<at::Tensor> gradients_of(const at::Tensor& loss,
                                     const std::vector<at::Tensor>& parameters, bool keep) {
  auto gradients = torch::autograd::grad({loss}, parameters, {}, keep);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i].strides() == parameters[i].strides()) continue;
    gradients[i] = at::empty_like(parameters[i].detach()).copy_(gradients[i]);
  }
  return gradients;
}

// Norms carry an infinity or a NaN anywhere in a tensor into one number each.
at::Tensor any_not_finite(const std::vector<at::Tensor>& gradients) {
  return at::stack(at::_foreach_norm(gradients)).isfinite().all().logical_not();
}

at::Tensor part_of_mean(const at::Tensor& mean, const parallel::Rows& rows) {
  return rows.whole() ? mean : mean.mul(rows.share());
}

}  // namespace zsq::train
