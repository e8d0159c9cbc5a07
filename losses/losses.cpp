// SPDX-License-Identifier: Apache-2.0
#include "losses/losses.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/stack.h>

#include "core/error.h"
#include "cuda_kernels/channel_moments.h"

namespace zsq::losses {

at::Tensor soft_cross_entropy(const at::Tensor& logits, const at::Tensor& targets) {
  return targets.mul(at::log_softmax(logits, 1)).sum(1).mean().neg();
}

at::Tensor hard_sample_cross_entropy(const at::Tensor& logits, const at::Tensor& labels,
                                     double focal_gamma) {
  const auto log_p = at::log_softmax(logits, 1).gather(1, labels.unsqueeze(1));
  if (focal_gamma == 0) return log_p.mean().neg();
  // The derivative of a power below 1 has no bound at 0.
  constexpr double kSmallest = 1e-6;
  return log_p.expm1().neg().clamp_min(kSmallest).pow(focal_gamma).mul(log_p).mean().neg();
}

at::Tensor easy_cross_entropy(const at::Tensor& student, const at::Tensor& teacher,
                              const at::Tensor& targets, double difficulty) {
  const auto label = targets.argmax(1, /*keepdim=*/true);
  const auto easy = teacher.softmax(1).gather(1, label).ge(1 - difficulty);
  return at::log_softmax(student, 1).gather(1, label).mul(easy).mean().neg();
}

namespace {

void require_pairs(std::size_t batch, std::size_t running) {
  if (batch > 0 && batch == running) return;
  throw Error(ErrorCode::internal,
              "BatchNorm statistics need one pair of running moments per pair of batch moments and "
              "at least one, not " +
                  std::to_string(running) + " for " + std::to_string(batch));
}

}  // namespace

std::vector<Moments> batch_moments(const std::vector<at::Tensor>& inputs) {
  std::vector<Moments> moments;
  for (const auto& input : inputs) {
    const auto [mean, variance] = cuda_kernels::channel_moments(input);
    moments.push_back({mean, variance});
  }
  return moments;
}

at::Tensor batch_norm_statistics(const std::vector<Moments>& batch,
                                 const std::vector<RunningMoments>& running) {
  require_pairs(batch.size(), running.size());
  // One difference over all layers at once: they are many and small.
  std::vector<at::Tensor> found, wanted, shares;
  for (std::size_t layer = 0; layer < batch.size(); ++layer) {
    const auto& mean = running[layer].mean;
    found.insert(found.end(), {batch[layer].mean, batch[layer].variance});
    wanted.insert(wanted.end(), {mean, running[layer].variance});
    shares.push_back(
        at::full({2 * mean.numel()}, 1.0 / static_cast<double>(mean.numel()), mean.options()));
  }
  const auto distance = at::cat(found).sub(at::cat(wanted));
  return distance.square().dot(at::cat(shares)).div(static_cast<double>(batch.size()));
}

at::Tensor normalised_batch_norm_statistics(const std::vector<Moments>& batch,
                                            const std::vector<RunningMoments>& running) {
  require_pairs(batch.size(), running.size());
  std::vector<at::Tensor> terms;
  for (std::size_t layer = 0; layer < batch.size(); ++layer) {
    const auto& [mean, variance, eps] = running[layer];
    const auto unit = variance.add(eps);
    const auto off = batch[layer].mean.sub(mean).square().div(unit);
    const auto wide = batch[layer].variance.add(eps).div(unit).sqrt().sub(1).square();
    terms.push_back(off.add(wide).mean());
  }
  return at::stack(terms).mean();
}

}  // namespace zsq::losses
