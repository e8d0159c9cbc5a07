// SPDX-License-Identifier: Apache-2.0
#include "losses/divergence.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "cuda_kernels/kl_divergence.h"
#include "losses/losses.h"
#include "tests/support/seed_each_test.h"

namespace zsq::losses {
namespace {

at::Tensor column(std::initializer_list<float> values) {
  return at::tensor(std::vector<float>(values)).unsqueeze(1);
}
double value(const at::Tensor& t) { return t.item<double>(); }

TEST(Divergence, OfLogitsIsTheKernelsToTheLastBit) {
  const auto s = at::randn({7, 5}), t = at::randn({7, 5});
  EXPECT_EQ(value(divergence(OutputKind::logits, s, t, 3, 7)),
            value(cuda_kernels::kl_divergence(s, t, 3, 7)));
  EXPECT_EQ(value(cross_entropy(OutputKind::logits, s, t.softmax(1))),
            value(soft_cross_entropy(s, t.softmax(1))));
}

// One label: p = 0.8, q = 0.5: 0.8 log 1.6 + 0.2 log 0.4.
TEST(Divergence, OfScoresIsThatOfEachLabel) {
  const double by_hand = 0.8 * std::log(1.6) + 0.2 * std::log(0.4);
  const auto teacher = column({static_cast<float>(std::log(4.0))}), student = column({0});
  EXPECT_NEAR(value(divergence(OutputKind::scores, student, teacher, 1, 1)), by_hand, 1e-6);
  const auto two = teacher.expand({1, 2}), none = student.expand({1, 2});
  EXPECT_NEAR(value(divergence(OutputKind::scores, none, two, 1, 1)), 2 * by_hand, 1e-6);
  // A student that saturates is far away, though its sigmoid is nearly the same number in f32.
  EXPECT_GT(value(divergence(OutputKind::scores, column({-90}), column({0}), 1, 1)), 40);
}

// sum |t - 3|^2 = 8 over 3 images; an error of 1 in one of them.
TEST(Divergence, OfValuesIsRelativeToTheirVariance) {
  const auto t = column({1, 3, 5}), s = column({1, 3, 6});
  EXPECT_NEAR(value(divergence(OutputKind::values, s, t, 1, 3)), 1.0 / 8, 1e-6);
  EXPECT_NEAR(value(divergence(OutputKind::values, s.add(100), t.add(100), 1, 3)), 1.0 / 8, 1e-4);
  EXPECT_NEAR(value(divergence(OutputKind::values, s.mul(7), t.mul(7), 1, 3)), 1.0 / 8, 1e-6);
  // One image has no variance: relative to its square.
  EXPECT_NEAR(value(divergence(OutputKind::values, column({6}), column({5}), 1, 1)), 1.0 / 25,
              1e-6);
}

TEST(Divergence, OfEveryKindTeachesTheStudentAlone) {
  for (const auto kind : {OutputKind::logits, OutputKind::scores, OutputKind::values}) {
    const auto s = at::randn({4, 3}).requires_grad_(true),
               t = at::randn({4, 3}).requires_grad_(true);
    EXPECT_NEAR(value(divergence(kind, t.detach(), t, 2, 4)), 0, 1e-6);
    divergence(kind, s, t, 2, 4).backward();
    EXPECT_GT(value(s.grad().abs().sum()), 0);
    EXPECT_FALSE(t.grad().defined());
  }
}

TEST(Agreement, OfClassesIsTheShareOfTheSame) {
  const auto t = at::tensor({3.0f, 1.0f, 1.0f, 2.0f}).view({2, 2});
  EXPECT_EQ(value(agreement(OutputKind::logits, t.flip(1), t)), 0);
  EXPECT_EQ(value(agreement(OutputKind::logits, t, t)), 1);
}

TEST(Agreement, OfOneLabelIsItsSide) {
  const auto t = column({2, -1, 3, -4});
  EXPECT_EQ(value(agreement(OutputKind::scores, column({1, -9, -1, -1}), t)), 0.75);
}

// Sets {0}, {0, 1}: F1 2/3; nothing on in either: the largest decides, 1 and 0; one empty: 0.
TEST(Agreement, OfLabelsIsTheF1OfThoseThatAreOn) {
  const auto of = [](std::vector<float> s, std::vector<float> t) {
    return value(
        agreement(OutputKind::scores, at::tensor(s).unsqueeze(0), at::tensor(t).unsqueeze(0)));
  };
  EXPECT_NEAR(of({1, -1, -1}, {1, 1, -1}), 2.0 / 3, 1e-12);
  EXPECT_EQ(of({-1, -2, -3}, {-2, -3, -4}), 1);
  EXPECT_EQ(of({-3, -2, -3}, {-2, -3, -4}), 0);
  EXPECT_EQ(of({-1, -1, -1}, {1, -1, -1}), 0);
}

TEST(Agreement, OfValuesIsTheirCosineOrTheErrorOfOne) {
  const auto t = at::tensor({1.0f, 0.0f, 0.0f, 2.0f}).view({2, 2});
  const auto s = at::tensor({2.0f, 0.0f, 1.0f, 1.0f}).view({2, 2});
  EXPECT_NEAR(value(agreement(OutputKind::values, s, t)), (1 + std::sqrt(0.5)) / 2, 1e-6);
  EXPECT_NEAR(value(agreement(OutputKind::values, column({1, 3, 6}), column({1, 3, 5}))), 0.75,
              1e-6);
  EXPECT_EQ(value(agreement(OutputKind::values, column({9, 3, -9}), column({1, 3, 5}))), 0);
}

TEST(MostFrequentShare, IsOneWhereTheTeacherSaysTheSameOfAll) {
  EXPECT_EQ(most_frequent_share(OutputKind::scores, column({-1, -2, -3, 1})), 0.75);
  EXPECT_EQ(most_frequent_share(OutputKind::values, column({5, 5, 5})), 1);
  EXPECT_EQ(most_frequent_share(OutputKind::values, column({1, 5, 6})), 0);
  const auto same = at::zeros({6, 4});
  same.select(1, 2).fill_(1);
  EXPECT_EQ(most_frequent_share(OutputKind::logits, same), 1);
}

// An image made for a label drives that one alone; of one score label 0 drives it down.
TEST(LabelCrossEntropy, OfScoresDrivesTheLabel) {
  const auto scores = at::zeros({1, 3}).requires_grad_(true);
  label_cross_entropy(OutputKind::scores, scores, at::tensor({1}, at::kLong), 0).backward();
  EXPECT_NEAR(scores.grad()[0][1].item<double>(), -0.5, 1e-6);
  EXPECT_EQ(scores.grad()[0][0].item<double>(), 0);
  const auto one = at::zeros({2, 1}).requires_grad_(true);
  label_cross_entropy(OutputKind::scores, one, at::tensor({0, 1}, at::kLong), 0).backward();
  EXPECT_GT(one.grad()[0][0].item<double>(), 0);
  EXPECT_LT(one.grad()[1][0].item<double>(), 0);
  EXPECT_EQ(label_count(OutputKind::scores, 1), 2);
  EXPECT_EQ(label_count(OutputKind::scores, 3), 3);
}

TEST(ClassLogits, AreNotMadeOfValues) {
  const auto two = class_logits(OutputKind::scores, column({-1, 2}));
  EXPECT_EQ(two.argmax(1)[0].item<int>(), 0);
  EXPECT_EQ(two.argmax(1)[1].item<int>(), 1);
  EXPECT_THROW(class_logits(OutputKind::values, column({1})), Error);
}

// Noise of variance v on the outputs themselves adds v / 2 times the information to the divergence.
TEST(DrawnLogLikelihood, PredictsWhatSmallNoiseAdds) {
  const auto draws = at::detail::createCPUGenerator(3);
  for (const auto kind : {OutputKind::logits, OutputKind::scores, OutputKind::values}) {
    const auto t = at::randn({6, 4}, draws, at::kFloat);
    double information = 0, added = 0;
    constexpr int kDraws = 600;
    constexpr double kVariance = 1e-2;
    for (int i = 0; i < kDraws; ++i) {
      const auto x = t.detach().clone().requires_grad_(true);
      drawn_log_likelihood(kind, x, draws).backward();
      information += value(x.grad().square().sum()) / kDraws;
      const auto noisy = t.add(at::randn({6, 4}, draws, at::kFloat), std::sqrt(kVariance));
      added += value(divergence(kind, noisy, t, 1, 1)) / kDraws;
    }
    EXPECT_NEAR(added, kVariance / 2 * information, 0.1 * added) << name_of(kind);
  }
}

}  // namespace
}  // namespace zsq::losses
