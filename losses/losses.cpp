// SPDX-License-Identifier: Apache-2.0
#include "losses/losses.h"

#include <ATen/ops/log_softmax.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/stack.h>

#include "core/error.h"
#include "cuda_kernels/channel_moments.h"

namespace zsq::losses {

at::Tensor soft_cross_entropy(const at::Tensor& logits, const at::Tensor& targets) {
  return targets.mul(at::log_softmax(logits, 1)).sum(1).mean().neg();
}

at::Tensor hard_sample_cross_entropy(const at::Tensor& logits, const at::Tensor& labels,
                                     double hardness) {
  const auto log_p = at::log_softmax(logits, 1).gather(1, labels.unsqueeze(1));
  if (hardness == 0) return log_p.mean().neg();
  // The derivative of a power below 1 has no bound at 0.
  constexpr double kSmallest = 1e-6;
  return log_p.expm1().neg().clamp_min(kSmallest).pow(hardness).mul(log_p).mean().neg();
}

at::Tensor batch_norm_statistics(const std::vector<at::Tensor>& inputs,
                                 const std::vector<RunningMoments>& running) {
  if (inputs.empty() || inputs.size() != running.size()) {
    throw Error(ErrorCode::internal,
                "BatchNorm statistics need one pair of running moments per "
                "input and at least one, not " +
                    std::to_string(running.size()) + " for " + std::to_string(inputs.size()));
  }
  std::vector<at::Tensor> terms;
  for (std::size_t layer = 0; layer < inputs.size(); ++layer) {
    const auto [mean, variance] = cuda_kernels::channel_moments(inputs[layer]);
    terms.push_back(at::mse_loss(mean, running[layer].mean)
                        .add(at::mse_loss(variance, running[layer].variance)));
  }
  return at::stack(terms).mean();
}

}  // namespace zsq::losses
