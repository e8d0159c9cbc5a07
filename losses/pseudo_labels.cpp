// SPDX-License-Identifier: Apache-2.0
#include "losses/pseudo_labels.h"

#include <ATen/ops/log_softmax.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/where.h>

#include <cmath>

#include "core/error.h"

namespace zsq::losses {

at::Tensor pseudo_label_cross_entropy(const at::Tensor& student, const at::Tensor& teacher,
                                      double reliable_entropy, double unreliable_weight) {
  const auto classes = teacher.size(1);
  if (classes < 2)
    throw Error(
        ErrorCode::unsupported_model,
        "pseudo_label_cross_entropy compares the two likeliest classes, and the network has " +
            std::to_string(classes) + "; leave it out of finetune.loss_terms");
  const auto log_p = at::log_softmax(teacher.detach(), 1), p = log_p.exp();
  const auto entropy = p.mul(log_p).sum(1).div(-std::log(static_cast<double>(classes)));
  const auto [likeliest, labels] = at::topk(p, 2, 1);
  const auto surprise = at::log_softmax(student, 1).gather(1, labels).neg();  // [N, 2]
  const auto reliable = surprise.select(1, 0);
  const auto unreliable = surprise.mul(likeliest).sum(1).mul(unreliable_weight);
  return at::where(entropy.le(reliable_entropy), reliable, unreliable).mean();
}

}  // namespace zsq::losses
