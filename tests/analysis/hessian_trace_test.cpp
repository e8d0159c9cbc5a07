// SPDX-License-Identifier: Apache-2.0
#include "analysis/hessian_trace.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "tests/analysis/linear.h"

namespace zsq::analysis {
namespace {

// f(w) = w'Aw / 2 in two tensors, gradient A w.
Tensors quadratic_gradient(const at::Tensor& a, const Tensors& w) {
  const auto both = at::cat({w[0].flatten(), w[1].flatten()});
  const auto g = a.mv(both);
  return {g.slice(0, 0, 2), g.slice(0, 2, 3)};
}

TEST(HessianTrace, OfADiagonalQuadraticIsExactWithOneProbe) {
  const auto a = at::tensor({2.0f, 0.0f, 0.0f, 0.0f, -1.0f, 0.0f, 0.0f, 0.0f, 5.0f}).view({3, 3});
  const Tensors at{at::tensor({0.3f, -0.2f}), at::tensor({1.0f})};
  const auto found =
      hessian_trace([&](const Tensors& w) { return quadratic_gradient(a, w); }, at, 0.125, 1, 7);
  EXPECT_NEAR(found.trace, 6, 1e-4);
  EXPECT_NEAR(found.layers[0], 1, 1e-4);
  EXPECT_NEAR(found.layers[1], 5, 1e-4);
}

TEST(HessianTrace, IsUnbiasedWithinItsError) {
  const auto a = at::tensor({2.0f, 1.0f, -1.0f, 1.0f, 3.0f, 0.5f, -1.0f, 0.5f, 1.0f}).view({3, 3});
  const Tensors at{at::tensor({0.0f, 0.0f}), at::tensor({0.0f})};
  const auto found =
      hessian_trace([&](const Tensors& w) { return quadratic_gradient(a, w); }, at, 0.125, 400, 1);
  EXPECT_GT(found.standard_error, 0);
  EXPECT_LT(found.standard_error, 0.5);
  EXPECT_NEAR(found.trace, 6, 4 * found.standard_error);
}

// Cross-entropy of softmax regression: H = mean_n (diag(s) - s s') (x) x x', so
//   tr(H) = mean_n |x_n|^2 (1 - sum_c s_nc^2);   tau^2 KL has s of z / tau and the same form.
TEST(HessianTrace, OfSoftmaxRegression) {
  const LinearCase net;
  const StudentFunction student(net.student, /*quantized=*/false);
  const Tensors weights = student.weights();
  const auto norms = net.features.square().sum(1);
  const auto expected = [&](double tau) {
    const auto s = at::softmax(net.logits(weights[0]) / tau, 1);
    return norms.mul(s.square().sum(1).neg().add(1)).mean().item<double>();
  };
  for (const auto& [objective, tau] :
       {std::pair{Objective::cross_entropy, 1.0}, {Objective::kl_divergence, 4.0}}) {
    const auto found =
        hessian_trace([&, o = objective,
                       t = tau](const Tensors& w) { return student.gradient(o, net.sample, t, w); },
                      weights, 1e-2, 300, 5);
    EXPECT_NEAR(found.trace, expected(tau), 4 * found.standard_error + 0.01) << name_of(objective);
    EXPECT_LT(found.standard_error, 0.1 * expected(tau));
  }
}

}  // namespace
}  // namespace zsq::analysis
