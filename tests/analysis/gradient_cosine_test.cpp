// SPDX-License-Identifier: Apache-2.0
#include "analysis/gradient_cosine.h"

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/analysis/linear.h"

namespace zsq::analysis {
namespace {

TEST(Cosine, OfVectorsWorkedByHand) {
  const auto x = at::tensor({3.0f, 4.0f});
  EXPECT_NEAR(cosine(x, at::tensor({4.0f, 3.0f})), 24.0 / 25, 1e-12);
  EXPECT_NEAR(cosine(x, x.mul(-2)), -1, 1e-12);
  EXPECT_NEAR(cosine(x, at::tensor({-4.0f, 3.0f})), 0, 1e-12);
  EXPECT_EQ(cosine(x, at::tensor({0.0f, 0.0f})), 0);
}

// One layer's gradients are A'x / N; their cosine by the formula, not by autograd.
TEST(GradientCosine, IsThatOfSoftmaxRegression) {
  LinearCase net;
  const double tau = 2;
  const StudentFunction student(net.student, /*quantized=*/false);
  const auto z = net.logits(student.weights()[0]);
  const auto labels = (at::softmax(z, 1) - net.sample.targets).t().mm(net.features);
  const auto teacher =
      (at::softmax(z / tau, 1) - at::softmax(net.sample.logits / tau, 1)).t().mm(net.features);
  const double expected =
      (labels * teacher).sum().item<double>() /
      std::sqrt(labels.square().sum().item<double>() * teacher.square().sum().item<double>());
  const GradientCosine found = gradient_cosine(student, net.sample, tau);
  EXPECT_NEAR(found.all, expected, 1e-5);
  ASSERT_EQ(found.layers.size(), 1u);
  EXPECT_NEAR(found.layers[0], expected, 1e-5);
  // A teacher who says at tau 1 what the labels say pulls the same way.
  net.sample.logits = net.sample.targets.log();
  EXPECT_NEAR(gradient_cosine(student, net.sample, 1).all, 1, 1e-5);
}

}  // namespace
}  // namespace zsq::analysis
