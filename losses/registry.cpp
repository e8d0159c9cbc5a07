// SPDX-License-Identifier: Apache-2.0
#include "losses/registry.h"

#include <algorithm>
#include <array>

#include "core/registry.h"
#include "losses/divergence.h"
#include "losses/features.h"
#include "losses/losses.h"
#include "losses/pseudo_labels.h"

namespace zsq::losses {
namespace {

at::Tensor softened_kl_divergence(const TermInputs& in) {
  return divergence(in.kind, in.student_logits, in.teacher_logits, in.temperature,
                    in.logits_divisor);
}

constexpr std::array kTerms{
    Term{.name = LossTerm::kl_divergence, .value = softened_kl_divergence},
    Term{.name = LossTerm::feature_mse,
         .needs_features = true,
         .value =
             [](const TermInputs& in) {
               return feature_error(in.student_features, in.teacher_features);
             }},
    Term{.name = LossTerm::channel_attention,
         .needs_features = true,
         .value =
             [](const TermInputs& in) {
               return channel_attention_error(in.student_features, in.teacher_features);
             }},
    Term{.name = LossTerm::cross_entropy,
         .needs_targets = true,
         .value =
             [](const TermInputs& in) {
               return cross_entropy(in.kind, in.student_logits, in.targets);
             }},
    Term{.name = LossTerm::easy_cross_entropy,
         .needs_targets = true,
         .value =
             [](const TermInputs& in) {
               return easy_cross_entropy(in.kind, in.student_logits, in.teacher_logits, in.targets,
                                         in.easy_difficulty);
             }},
    Term{.name = LossTerm::grad_cam,
         .needs_features = true,
         .needs_classifier = true,
         .needs_targets = true,
         .value =
             [](const TermInputs& in) {
               return grad_cam_error(in.student_features.back(), in.teacher_features.back(),
                                     in.targets, in.classifier);
             }},
    Term{.name = LossTerm::pseudo_label_cross_entropy,
         .value =
             [](const TermInputs& in) {
               // Where outputs are not classes, one word of the teacher is as good as another: all
               // count, each as sure as it is.
               if (in.kind != models::OutputKind::logits)
                 return divergence(in.kind, in.student_logits, in.teacher_logits, /*tau=*/1,
                                   static_cast<double>(in.student_logits.size(0)));
               return pseudo_label_cross_entropy(in.student_logits, in.teacher_logits,
                                                 in.reliable_entropy, in.unreliable_weight);
             }},
    Term{.name = LossTerm::perturbed_kl_divergence,
         .needs_second_pass = true,
         .value =
             [](const TermInputs& in) {
               return divergence(in.kind, in.perturbed_student_logits, in.perturbed_teacher_logits,
                                 in.temperature, in.logits_divisor);
             }},
    Term{.name = LossTerm::relative_feature_mse,
         .needs_features = true,
         .value =
             [](const TermInputs& in) {
               return relative_feature_error(in.student_features, in.teacher_features);
             }},
};

}  // namespace

std::span<const Term> terms() { return kTerms; }

const Term& term(LossTerm name) { return row_of(kTerms, name, "losses/registry.cpp"); }

bool any_needs(const std::vector<LossWeight>& chosen, bool Term::*what) {
  return std::any_of(chosen.begin(), chosen.end(),
                     [&](const LossWeight& c) { return term(c.term).*what; });
}

std::vector<LossWeight> without(const std::vector<LossWeight>& chosen, bool Term::*what) {
  std::vector<LossWeight> rest;
  std::copy_if(chosen.begin(), chosen.end(), std::back_inserter(rest),
               [&](const LossWeight& c) { return !(term(c.term).*what); });
  return rest;
}

at::Tensor weighted_sum(const std::vector<LossWeight>& chosen, const TermInputs& inputs) {
  at::Tensor sum;
  for (const auto& [name, weight] : chosen) {
    const auto value = term(name).value(inputs);
    sum = sum.defined() ? sum.add(value, weight) : value.mul(weight);
  }
  return sum;
}

}  // namespace zsq::losses
