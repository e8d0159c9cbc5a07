// SPDX-License-Identifier: Apache-2.0
// A student as a function of its latent weights, to look at its losses and gradients from outside
// of training. Everything else of it stays as it is.
#pragma once
#include <functional>

#include "quant/weight_layers.h"

namespace zsq::analysis {

using Tensors = std::vector<at::Tensor>;

// Images with what the student is to learn of them: f32 [N, C, H, W], the teacher's logits and the
// targets, f32 [N, classes].
struct Sample {
  at::Tensor images, logits, targets;
  models::OutputRow kind = models::OutputKind::logits;  // of the teacher
};

enum class Objective { cross_entropy, kl_divergence, both };
const char* name_of(Objective objective);

// Cross-entropy to the targets, or tau^2 KL to the teacher's logits, or their sum; means over the
// images, in nats.
at::Tensor loss_of(Objective objective, const at::Tensor& logits, const Sample& sample, double tau);

class StudentFunction {
 public:
  // `quantized`: as the student runs, gradients by its surrogates. Otherwise without any quantizer,
  // where the function is as smooth as the network is.
  StudentFunction(const quant::Student& student, bool quantized);

  const std::vector<std::string>& layers() const { return layers_; }  // one for each weight
  Tensors weights() const;                                            // copies of the latent ones

  at::Tensor logits(const at::Tensor& images, const Tensors& weights) const;
  // Without a gradient.
  double loss(Objective objective, const Sample& sample, double tau, const Tensors& weights) const;
  Tensors gradient(Objective objective, const Sample& sample, double tau,
                   const Tensors& weights) const;

 private:
  const quant::Student& student_;
  bool quantized_;
  std::vector<quant::WeightSite> sites_;
  std::vector<std::string> layers_;
  models::Graph graph_;                // its weights are parameters named as their quantizers
  models::ParameterStore parameters_;  // without activation grids where nothing is quantized
};

}  // namespace zsq::analysis
