// SPDX-License-Identifier: Apache-2.0
// The losses of the training loop that are plain functions of tensors. The student's KL divergence
// is cuda_kernels/kl_divergence.h.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

namespace zsq::losses {

// Cross-entropy with soft targets: mean over the batch of -sum_c target_nc log softmax(logits)_nc,
// in nats. logits, targets [N, C] f32 -> scalar.
at::Tensor soft_cross_entropy(const at::Tensor& logits, const at::Tensor& targets);

// Cross-entropy in which images that are named with confidence count less: mean over the batch of
// (1 - p_n)^focal_gamma * -log p_n, p_n the softmax probability of the label, in nats (HAST
// 2303.13826). The weight takes part in the gradient. focal_gamma 0: plain cross-entropy. logits
// [N, C] f32, labels int64 [N] -> scalar.
at::Tensor hard_sample_cross_entropy(const at::Tensor& logits, const at::Tensor& labels,
                                     double focal_gamma);

// The same of log probabilities of the labels, f32 [N, 1].
at::Tensor focal_mean(const at::Tensor& log_p, double focal_gamma);

// Cross-entropy of the images that are easy for the teacher (SynQ 2603.18423, eq. 6): with y the
// class of the largest target and p its probability by the teacher, the mean over the batch of
//   [1 - p_n <= difficulty] * -log softmax(student)_n,y
// student, teacher (logits), targets [N, C] f32 -> scalar.
at::Tensor easy_cross_entropy(const at::Tensor& student, const at::Tensor& teacher,
                              const at::Tensor& targets, double difficulty);

// Of one layer's input, [C] f32.
struct Moments {
  at::Tensor mean, variance;
};
struct RunningMoments {
  at::Tensor mean, variance;
  double eps = 1e-5;  // of the layer
};
// Of tensors [N, C_l, H, W], biased.
std::vector<Moments> batch_moments(const std::vector<at::Tensor>& inputs);

// Moments of two sets of inputs together, of `n` and `m` images of the same size, biased:
//   mu = (n mu_a + m mu_b) / (n + m)
//   var = (n var_a + m var_b) / (n + m) + n m (mu_a - mu_b)^2 / (n + m)^2
std::vector<Moments> pooled_moments(const std::vector<Moments>& a, std::int64_t n,
                                    const std::vector<Moments>& b, std::int64_t m);

// Factors w_l of the L layers, in the order of the network: `shallow` of the first floor(L / 2),
// `deep` of the rest. Layered weights are TexQ's (NeurIPS 2023, published 0.2 and 1.1); that the
// middle one of an odd number counts as deep is ours.
std::vector<double> layered_weights(std::size_t layers, double shallow, double deep);

// BatchNorm statistics (GDFQ 2003.03603 eq. 3): (1/L) sum_l w_l [ MSE(mu_l, mean_l) + MSE(var_l,
// variance_l) ] with batch moments mu, var at the inputs of the L BatchNorm layers. `weights`:
// w_l, one per layer; empty: all 1.
at::Tensor batch_norm_statistics(const std::vector<Moments>& batch,
                                 const std::vector<RunningMoments>& running,
                                 const std::vector<double>& weights = {});

// The same with deviations instead of variances (Genie 2212.04780):
//   (1/L) sum_l w_l [ MSE(mu_l, mean_l) + MSE(sqrt(var_l + eps), sqrt(variance_l + eps)) ]
at::Tensor batch_norm_deviations(const std::vector<Moments>& batch,
                                 const std::vector<RunningMoments>& running,
                                 const std::vector<double>& weights = {});

// The same in units of each channel's deviation, as the layer normalises it, so that a channel of
// wide range does not outweigh the rest:
//   (1/L) sum_l w_l mean_c [ (mu - mean)^2 / (variance + eps) + (sqrt((var + eps) / (variance +
//   eps)) - 1)^2 ]
at::Tensor normalised_batch_norm_statistics(const std::vector<Moments>& batch,
                                            const std::vector<RunningMoments>& running,
                                            const std::vector<double>& weights = {});

}  // namespace zsq::losses
