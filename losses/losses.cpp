// SPDX-License-Identifier: Apache-2.0
#include "losses/losses.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/stack.h>

#include <algorithm>

#include "core/error.h"
#include "cuda_kernels/channel_moments.h"

namespace zsq::losses {

at::Tensor soft_cross_entropy(const at::Tensor& logits, const at::Tensor& targets) {
  return targets.mul(at::log_softmax(logits, 1)).sum(1).mean().neg();
}

at::Tensor hard_sample_cross_entropy(const at::Tensor& logits, const at::Tensor& labels,
                                     double focal_gamma) {
  return focal_mean(at::log_softmax(logits, 1).gather(1, labels.unsqueeze(1)), focal_gamma);
}

at::Tensor focal_mean(const at::Tensor& log_p, double focal_gamma) {
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

void require_pairs(std::size_t batch, std::size_t running, std::size_t weights) {
  if (batch > 0 && batch == running && (weights == 0 || weights == batch)) return;
  throw Error(ErrorCode::internal,
              "BatchNorm statistics need one pair of running moments, and one weight or none, per "
              "pair of batch moments and at least one, not " +
                  std::to_string(running) + " and " + std::to_string(weights) + " for " +
                  std::to_string(batch));
}

double weight_of(const std::vector<double>& weights, std::size_t layer) {
  return weights.empty() ? 1 : weights[layer];
}

// (1/L) sum_l w_l term(l)
template <class Term>
at::Tensor mean_over_layers(const std::vector<Moments>& batch,
                            const std::vector<RunningMoments>& running,
                            const std::vector<double>& weights, Term&& term) {
  require_pairs(batch.size(), running.size(), weights.size());
  std::vector<at::Tensor> terms;
  for (std::size_t layer = 0; layer < batch.size(); ++layer) {
    const auto value = term(batch[layer], running[layer]);
    const double weight = weight_of(weights, layer);
    terms.push_back(weight == 1 ? value : value.mul(weight));
  }
  return at::stack(terms).mean();
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

std::vector<Moments> pooled_moments(const std::vector<Moments>& a, std::int64_t n,
                                    const std::vector<Moments>& b, std::int64_t m) {
  if (a.size() != b.size() || n + m < 1)
    throw Error(ErrorCode::internal, "moments of " + std::to_string(a.size()) + " and " +
                                         std::to_string(b.size()) + " layers cannot be pooled");
  const double share = static_cast<double>(m) / static_cast<double>(n + m);  // of b
  std::vector<Moments> pooled;
  for (std::size_t layer = 0; layer < a.size(); ++layer) {
    const auto apart = b[layer].mean.sub(a[layer].mean);
    pooled.push_back(
        {a[layer].mean.add(apart, share), a[layer]
                                              .variance.mul(1 - share)
                                              .add(b[layer].variance, share)
                                              .add(apart.square(), share * (1 - share))});
  }
  return pooled;
}

std::vector<double> layered_weights(std::size_t layers, double shallow, double deep) {
  std::vector<double> weights(layers, deep);
  std::fill_n(weights.begin(), layers / 2, shallow);
  return weights;
}

at::Tensor batch_norm_statistics(const std::vector<Moments>& batch,
                                 const std::vector<RunningMoments>& running,
                                 const std::vector<double>& weights) {
  require_pairs(batch.size(), running.size(), weights.size());
  // One difference over all layers at once: they are many and small.
  std::vector<at::Tensor> found, wanted, shares;
  for (std::size_t layer = 0; layer < batch.size(); ++layer) {
    const auto& mean = running[layer].mean;
    found.insert(found.end(), {batch[layer].mean, batch[layer].variance});
    wanted.insert(wanted.end(), {mean, running[layer].variance});
    shares.push_back(at::full({2 * mean.numel()},
                              weight_of(weights, layer) / static_cast<double>(mean.numel()),
                              mean.options()));
  }
  const auto distance = at::cat(found).sub(at::cat(wanted));
  return distance.square().dot(at::cat(shares)).div(static_cast<double>(batch.size()));
}

at::Tensor batch_norm_deviations(const std::vector<Moments>& batch,
                                 const std::vector<RunningMoments>& running,
                                 const std::vector<double>& weights) {
  return mean_over_layers(
      batch, running, weights, [](const Moments& found, const RunningMoments& wanted) {
        const auto deviation = [&](const at::Tensor& v) { return v.add(wanted.eps).sqrt(); };
        const auto off = found.mean.sub(wanted.mean).square();
        const auto wide = deviation(found.variance).sub(deviation(wanted.variance)).square();
        return off.add(wide).mean();
      });
}

at::Tensor normalised_batch_norm_statistics(const std::vector<Moments>& batch,
                                            const std::vector<RunningMoments>& running,
                                            const std::vector<double>& weights) {
  return mean_over_layers(
      batch, running, weights, [](const Moments& found, const RunningMoments& wanted) {
        const auto unit = wanted.variance.add(wanted.eps);
        const auto off = found.mean.sub(wanted.mean).square().div(unit);
        const auto wide = found.variance.add(wanted.eps).div(unit).sqrt().sub(1).square();
        return off.add(wide).mean();
      });
}

}  // namespace zsq::losses
