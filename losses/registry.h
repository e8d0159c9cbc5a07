// SPDX-License-Identifier: Apache-2.0
// The terms that the student's loss is a weighted sum of. A new one: a function in a pair of files
// of its own, its name in losses/options.h, a row in registry.cpp.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <span>
#include <vector>

#include "losses/options.h"
#include "models/graph.h"

namespace zsq::losses {

// What the student and its teacher make of the same images. Gradients flow to the student's alone.
struct TermInputs {
  models::OutputRow kind = models::OutputKind::logits;  // what the network's outputs mean
  at::Tensor student_logits = {}, teacher_logits = {};  // f32 [N, K]
  at::Tensor targets = {};                              // f32 [N, K], of needs_targets
  // [N, C_l, H_l, W_l], of needs_features
  std::vector<at::Tensor> student_features = {}, teacher_features = {};
  // f32 [N, K] on the perturbed images, of needs_second_pass
  at::Tensor perturbed_student_logits = {}, perturbed_teacher_logits = {};
  at::Tensor classifier = {};    // f32 [K, C_l] of the last map, of needs_classifier
  double temperature = 1;        // tau of the softened predictions
  double logits_divisor = 1;     // of sums over logits: N, or N * K
  double easy_difficulty = 0.5;  // of easy_cross_entropy
  double reliable_entropy = 0.3, unreliable_weight = 0.5;  // of pseudo_label_cross_entropy
};

struct Term {
  LossTerm name;
  bool needs_features = false;    // feature maps at residual additions and ends of stages
  bool needs_classifier = false;  // the weight of the teacher's last layer
  bool needs_targets = false;     // class probabilities that the images were made for
  // Logits of a second pass, on the images perturbed by finetune.perturbation (train/step.h).
  bool needs_second_pass = false;
  at::Tensor (*value)(const TermInputs&);  // scalar
};

std::span<const Term> terms();
const Term& term(LossTerm name);
bool any_needs(const std::vector<LossWeight>& chosen, bool Term::*what);
std::vector<LossWeight> without(const std::vector<LossWeight>& chosen, bool Term::*what);

// sum_t weight_t value_t
at::Tensor weighted_sum(const std::vector<LossWeight>& chosen, const TermInputs& inputs);

}  // namespace zsq::losses
