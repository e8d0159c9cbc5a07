// SPDX-License-Identifier: Apache-2.0
#include "losses/registry.h"

#include <ATen/ops/kl_div.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/seed_each_test.h"

namespace zsq::losses {
namespace {

TermInputs drawn() {
  return {.student_logits = at::randn({4, 5}).requires_grad_(true),
          .teacher_logits = at::randn({4, 5}),
          .targets = at::randn({4, 5}).softmax(1),
          .student_features = {at::randn({4, 3, 2, 2}).requires_grad_(true)},
          .teacher_features = {at::randn({4, 3, 2, 2})},
          .perturbed_student_logits = at::randn({4, 5}).requires_grad_(true),
          .perturbed_teacher_logits = at::randn({4, 5}),
          .classifier = at::randn({5, 3}),
          .temperature = 3,
          .logits_divisor = 4,
          .easy_difficulty = 1};
}

TEST(LossTerms, EachHasOneRow) {
  EXPECT_EQ(terms().size(), EnumNames<LossTerm>::names.size());
  for (std::size_t i = 0; i < EnumNames<LossTerm>::names.size(); ++i)
    EXPECT_EQ(term(static_cast<LossTerm>(i)).name, static_cast<LossTerm>(i));
}

// What a term says that it needs is what it reads, and it teaches the student through that.
TEST(LossTerms, ReadWhatTheyNeedAndTeachTheStudent) {
  for (const Term& term : terms()) {
    TermInputs in = drawn();
    if (!term.needs_targets) in.targets.reset();
    if (!term.needs_features) in.student_features = in.teacher_features = std::vector<at::Tensor>();
    if (!term.needs_second_pass) in.perturbed_student_logits.reset();
    const auto value = term.value(in);
    EXPECT_EQ(value.dim(), 0) << enum_name(term.name);
    value.backward();
    const auto& read = term.needs_features      ? in.student_features[0]
                       : term.needs_second_pass ? in.perturbed_student_logits
                                                : in.student_logits;
    EXPECT_GT(read.grad().abs().sum().item<double>(), 0) << enum_name(term.name);
  }
}

TEST(LossTerms, AddUpWithTheirWeights) {
  const TermInputs in = drawn();
  const auto kl = at::kl_div(at::log_softmax(in.student_logits / 3, 1),
                             at::softmax(in.teacher_logits / 3, 1), at::Reduction::Sum)
                      .mul(9.0 / 4);
  const auto mse = at::mse_loss(in.student_features[0], in.teacher_features[0]);
  const auto sum = weighted_sum({{LossTerm::kl_divergence, 2}, {LossTerm::feature_mse, 0.5}}, in);
  EXPECT_NEAR(sum.item<double>(), (2 * kl + 0.5 * mse).item<double>(), 1e-5);
}

// p of the label by the teacher: 0.88, 0.5 and 0.12; log p by the student: -0.69.
TEST(LossTerms, EasyCrossEntropyCountsEasyImages) {
  const auto teacher = at::tensor({2.0f, 0.0f, 0.0f, 0.0f, 0.0f, 2.0f}).view({3, 2});
  const auto targets = at::tensor({1.0f, 0.0f, 0.6f, 0.4f, 1.0f, 0.0f}).view({3, 2});
  const auto student = at::zeros({3, 2});
  const auto value = [&](double difficulty) {
    return term(LossTerm::easy_cross_entropy)
        .value({.student_logits = student,
                .teacher_logits = teacher,
                .targets = targets,
                .easy_difficulty = difficulty})
        .item<double>();
  };
  const double log2 = std::log(2.0);
  EXPECT_EQ(value(0.1), 0);
  EXPECT_NEAR(value(0.2), log2 / 3, 1e-6);
  EXPECT_NEAR(value(0.55), 2 * log2 / 3, 1e-6);
  EXPECT_NEAR(value(0.9), log2, 1e-6);
}

// Of targets that name one class each: minus the mean log probability of these.
TEST(LossTerms, CrossEntropyIsThatOfTheTargets) {
  TermInputs in = drawn();
  in.targets = at::zeros({4, 5});
  double expected = 0;
  for (std::int64_t n = 0; n < 4; ++n) {
    in.targets[n][n] = 1;
    expected -= at::log_softmax(in.student_logits, 1)[n][n].item<double>() / 4;
  }
  const auto value = weighted_sum({{LossTerm::cross_entropy, 1}}, in);
  EXPECT_NEAR(value.item<double>(), expected, 1e-5);
}

}  // namespace
}  // namespace zsq::losses
