// SPDX-License-Identifier: Apache-2.0
#include "cuda_kernels/kl_divergence.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>

#include "tests/cuda_kernels/helpers.h"

namespace zsq::cuda_kernels {
namespace {

using namespace zsq::test;

at::Tensor truth(const at::Tensor& student, const at::Tensor& teacher, double tau, double divisor) {
  const at::Tensor log_s = at::log_softmax(student.to(at::kDouble) / tau, 1);
  const at::Tensor log_p = at::log_softmax(teacher.to(at::kDouble) / tau, 1);
  return (log_p.exp() * (log_p - log_s)).sum() * (tau * tau / divisor);
}

TEST(KlDivergence, HandWorkedExample) {
  // p = (3/4, 1/4), s = (1/2, 1/2): KL = 3/4 log 3/2 + 1/4 log 1/2 = 0.1308120.
  const at::Tensor student = values({5, 5}).reshape({1, 2});
  const at::Tensor teacher = values({std::log(3.0f), 0}).reshape({1, 2});
  EXPECT_NEAR(kl_divergence(student, teacher, 1, 1).item<float>(), 0.1308120f, 1e-7);
}

TEST(KlDivergence, MatchesTruth) {
  for (const double tau : {1.0, 4.0, 20.0}) {
    for (const std::int64_t classes : {1, 10, 1000}) {
      const at::Tensor teacher = random({7, classes}, 5);
      for (const double gap :
           {3.0, 1e-2}) {  // the second is where float sums would lose everything
        const at::Tensor student = leaf(teacher + random({7, classes}, gap));
        const at::Tensor loss = kl_divergence(student, teacher, tau, 7);
        const at::Tensor expected = truth(student, teacher, tau, 7);
        EXPECT_NEAR(loss.item<float>(), expected.item<double>(),
                    1e-6 * expected.item<double>() + 1e-15);
        const at::Tensor weight = at::scalar_tensor(1.7f);
        const at::Tensor dx = gradient(loss, student, weight);
        const at::Tensor dx_truth = gradient(expected, student, weight.to(at::kDouble));
        EXPECT_TRUE(at::allclose(dx, dx_truth, 1e-5, 1e-9));
      }
    }
  }
}

// One logit of the student runs away from the teacher's; a row at a time, so that none hides
// another.
TEST(KlDivergence, MatchesTruthHoweverFarALogitIs) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "float's sums are this close in vector lanes, which AddressSanitizer takes away";
#endif
  for (const double tau : {1.0, 4.0, 20.0}) {
    for (const std::int64_t classes : {2, 10, 100, 1000}) {
      const at::Tensor teacher = random({1, classes}, 3);
      for (const std::int64_t moved : {std::int64_t{0}, classes - 1}) {
        for (double gap = -60; gap <= 60; gap += 1.5) {
          at::Tensor student = teacher.clone();
          student[0][moved] += gap * tau;
          const double expected = truth(student, teacher, tau, 1).item<double>();
          EXPECT_NEAR(kl_divergence(student, teacher, tau, 1).item<float>(), expected,
                      3e-6 * expected)
              << classes << " classes, tau " << tau << ", logit " << moved << " moved by " << gap;
        }
      }
    }
  }
}

TEST(KlDivergence, GradientByFiniteDifferences) {
  const at::Tensor student = leaf(random({3, 5}, 2)), teacher = random({3, 5}, 2);
  const at::Tensor dx = gradient(kl_divergence(student, teacher, 2, 3), student, at::ones({}));
  const double h = 1e-2;
  for (std::int64_t i = 0; i < 15; ++i) {
    at::Tensor entry = student.detach().view({-1})[i];
    entry += h;
    const double above = kl_divergence(student, teacher, 2, 3).item<float>();
    entry -= 2 * h;
    const double below = kl_divergence(student, teacher, 2, 3).item<float>();
    entry += h;
    EXPECT_NEAR(dx.view({-1})[i].item<float>(), (above - below) / (2 * h), 1e-4);
  }
}

TEST(KlDivergence, ZeroForEqualLogitsAndInvariantToShifts) {
  const at::Tensor teacher = random({4, 10}, 5);
  EXPECT_EQ(kl_divergence(teacher, teacher, 20, 4).item<float>(), 0);
  EXPECT_NEAR(kl_divergence(teacher + 64, teacher, 20, 4).item<float>(), 0, 1e-8);
}

TEST(KlDivergence, ExtremeLogits) {
  const at::Tensor teacher = values({1e4f, -1e4f, -kInf}).reshape({1, 3});
  EXPECT_EQ(kl_divergence(teacher, teacher * 0.5, 1, 1).item<float>(), 0);
  const at::Tensor opposite = values({-1e4f, 1e4f, 0}).reshape({1, 3});
  EXPECT_FLOAT_EQ(kl_divergence(opposite, teacher, 1, 1).item<float>(), 2e4f);
  const at::Tensor nan = at::full({1, 3}, kNan);
  EXPECT_TRUE(std::isnan(kl_divergence(nan, opposite, 1, 1).item<float>()));
}

TEST(KlDivergence, AnyMemoryOrderNoRowsAndNoGradientToTheTeacher) {
  const at::Tensor student = random({5, 4}).t(), teacher = leaf(random({8, 5}).slice(0, 0, 8, 2));
  const at::Tensor loss = kl_divergence(student, teacher, 2, 4);
  EXPECT_NEAR(loss.item<float>(), truth(student, teacher, 2, 4).item<double>(), 1e-6);
  EXPECT_FALSE(loss.requires_grad());
  const at::Tensor none = leaf(at::empty({0, 4}));
  EXPECT_EQ(kl_divergence(none, none, 2, 1).item<float>(), 0);
}

TEST(KlDivergence, BadArgumentsAreNamed) {
  const at::Tensor x = random({2, 3});
  expect_error([&] { kl_divergence(at::ones({3}), x, 1, 1); },
               "kl_divergence: student is Float[3]");
  expect_error(
      [&] {
        kl_divergence(x, at::ones({2, 4}), 1, 1);
      },
      "teacher is Float[2, 4] on cpu, expected Float[2, 3]");
  expect_error([&] { kl_divergence(x, x, 0, 1); }, "tau is 0");
  expect_error([&] { kl_divergence(x, x, 1, -1); }, "divisor is -1");
}

}  // namespace
}  // namespace zsq::cuda_kernels
