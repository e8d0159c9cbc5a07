// SPDX-License-Identifier: Apache-2.0
#include "losses/pseudo_labels.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "tests/support/seed_each_test.h"

namespace zsq::losses {
namespace {

at::Tensor logits_of(const std::vector<double>& probabilities) {
  return at::tensor(probabilities, at::kFloat).log().view({1, -1});
}

// The teacher's entropy is 0.80 of the largest, log 3.
TEST(PseudoLabelCrossEntropy, HasOneLabelOrTwo) {
  const auto teacher = logits_of({0.25, 0.65, 0.1}), student = logits_of({0.5, 0.2, 0.3});
  const double entropy =
      -(0.25 * std::log(0.25) + 0.65 * std::log(0.65) + 0.1 * std::log(0.1)) / std::log(3.0);
  const double reliable = -std::log(0.2);
  const double unreliable = 0.4 * (-0.65 * std::log(0.2) - 0.25 * std::log(0.5));
  const auto loss = [&](double threshold) {
    return pseudo_label_cross_entropy(student, teacher, threshold, 0.4).item<double>();
  };
  EXPECT_NEAR(loss(entropy + 1e-4), reliable, 1e-5);
  EXPECT_NEAR(loss(entropy - 1e-4), unreliable, 1e-5);
  EXPECT_NEAR(loss(1), reliable, 1e-5);
  EXPECT_NEAR(loss(0), unreliable, 1e-5);
}

TEST(PseudoLabelCrossEntropy, IsTheMeanOverBothGroups) {
  const auto teacher = at::randn({16, 5}) * 3, student = at::randn({16, 5});
  double sum = 0;
  for (std::int64_t n = 0; n < 16; ++n)
    sum += pseudo_label_cross_entropy(student.narrow(0, n, 1), teacher.narrow(0, n, 1), 0.4, 0.5)
               .item<double>();
  EXPECT_NEAR(pseudo_label_cross_entropy(student, teacher, 0.4, 0.5).item<double>(), sum / 16,
              1e-5);
}

TEST(PseudoLabelCrossEntropy, TheGradientIsTheStudents) {
  const auto teacher = at::randn({6, 5}).requires_grad_(true);
  const auto at_x = at::randn({6, 5});
  auto x = at_x.clone().requires_grad_(true);
  pseudo_label_cross_entropy(x, teacher, 0.6, 0.5).backward();
  EXPECT_FALSE(teacher.grad().defined());
  const auto moved = [&](std::int64_t i, double by) {
    auto y = at_x.clone();
    y.view(-1)[i] += by;
    return pseudo_label_cross_entropy(y, teacher, 0.6, 0.5).item<double>();
  };
  for (std::int64_t i = 0; i < x.numel(); i += 3)
    EXPECT_NEAR(x.grad().flatten()[i].item<double>(), (moved(i, 1e-2) - moved(i, -1e-2)) / 2e-2,
                1e-3);
}

TEST(PseudoLabelCrossEntropy, NeedsTwoClasses) {
  EXPECT_THROW(pseudo_label_cross_entropy(at::ones({2, 1}), at::ones({2, 1}), 0.5, 0.5), Error);
}

}  // namespace
}  // namespace zsq::losses
