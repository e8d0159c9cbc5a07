// SPDX-License-Identifier: Apache-2.0
#include "train/optimizers.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "train/published_search.h"

namespace zsq::train {
namespace {

TEST(Adam, FollowsItsFormula) {
  auto w = at::tensor({1.0f, -2.0f}).requires_grad_(true);
  Adam adam({{"w", w}}, 0.5, 0.999);
  double expected = 1, mean = 0, square = 0;
  for (int t = 1; t <= 4; ++t) {
    const double g = 0.3 * t;
    adam.step({at::tensor({static_cast<float>(g), 0.0f})}, 0.1);
    mean = 0.5 * mean + 0.5 * g;
    square = 0.999 * square + 0.001 * g * g;
    expected -= 0.1 * (mean / (1 - std::pow(0.5, t))) /
                (std::sqrt(square / (1 - std::pow(0.999, t))) + 1e-8);
  }
  EXPECT_NEAR(w[0].item<double>(), expected, 1e-5);
  EXPECT_EQ(w[1].item<double>(), -2);
}

TEST(Tether, HoldsEachValueNearItsStart) {
  auto w = at::tensor({1.0f, -2.0f, 3.0f}).requires_grad_(true);
  const Tether tether({w});
  w.detach().copy_(at::tensor({1.5f, -2.2f, 0.0f}));
  tether.hold(0.25);
  EXPECT_TRUE(w.allclose(at::tensor({1.25f, -2.2f, 2.75f})));
}

TEST(Nesterov, FollowsItsFormula) {
  auto w = at::tensor({1.0f}).requires_grad_(true);
  Nesterov sgd({{"w", w}}, 0.9);
  double expected = 1, velocity = 0;
  for (int t = 1; t <= 4; ++t) {
    sgd.step({at::tensor({0.5f * static_cast<float>(t)})}, 0.1);
    velocity = 0.9 * velocity + 0.5 * t;
    expected -= 0.1 * (0.5 * t + 0.9 * velocity);
  }
  EXPECT_NEAR(w[0].item<double>(), expected, 1e-5);
}

TEST(UnitAdam, MovesInUnits) {
  auto w = at::tensor({1.0f, -2.0f, 3.0f, 4.0f}).view({2, 2}).requires_grad_(true);
  const auto unit = at::tensor({0.5f, 0.0f}).view({2, 1});
  UnitAdam adam({{"w", w}}, {unit});
  double expected = 1, mean = 0, square = 0;
  for (int t = 1; t <= 4; ++t) {
    const double g = t == 3 ? -0.7 : 0.3 * t;  // of w; of w / unit half of it
    const auto of_w = static_cast<float>(g);
    adam.step({at::tensor({of_w, 0.0f, of_w, of_w}).view({2, 2})}, 0.1);
    mean = 0.9 * mean + 0.1 * 0.5 * g;
    square = 0.99 * square + 0.01 * 0.25 * g * g;
    expected -= 0.1 * 0.5 * (mean / (1 - std::pow(0.9, t))) /
                (std::sqrt(square / (1 - std::pow(0.99, t))) + 1e-8);
  }
  EXPECT_NEAR(w[0][0].item<double>(), expected, 1e-5);
  EXPECT_EQ(w[0][1].item<double>(), -2);  // no gradient
  EXPECT_EQ(w[1][0].item<double>(), 3);   // no unit
}

TEST(UnitAdam, MovesAtMostOneUnitOfTheRateWhateverTheGradient) {
  for (const float g : {1e-4f, 1.0f, 1e4f}) {
    auto w = at::tensor({1.0f});
    UnitAdam adam({{"w", w}}, {at::tensor({2.0f})});
    adam.step({at::tensor({g})}, 0.01);
    EXPECT_NEAR(w.item<double>(), 1 - 0.02, 1e-5) << g;
  }
}

TEST(StepRule, ForgetsEarlierGradientsWhenStopped) {
  auto w = at::tensor({1.0f});
  UnitAdam adam({{"w", w}}, {at::tensor({1.0f})});
  Nesterov sgd({{"w", w}}, 0.9);
  for (StepRule* rule : std::initializer_list<StepRule*>{&adam, &sgd}) {
    rule->step({at::tensor({1.0f})}, 0.1);
    rule->stop();
    const auto before = w.clone();
    rule->step({at::tensor({0.0f})}, 0.1);
    EXPECT_TRUE(w.equal(before));
  }
}

// As on a device that is not waited for: one code path whether the step counts or not.
TEST(Adam, ChangesNothingWhereItIsToSkip) {
  const auto no = at::zeros({}, at::kBool), yes = at::ones({}, at::kBool);
  const auto good = at::tensor({0.5f, -1.0f}), bad = good / 0;
  auto w = at::tensor({1.0f, -2.0f}), v = w.clone();
  Adam with({{"w", w}}, 0.5, 0.999), without({{"w", v}}, 0.5, 0.999);
  for (int t = 0; t < 3; ++t) {
    with.step({good}, 0.1, no);
    with.step({bad}, 0.1, yes);
    without.step({good}, 0.1);
  }
  EXPECT_TRUE(w.equal(v));
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_TRUE(with.state()[i].second.equal(without.state()[i].second)) << i;
}

TEST(Optimizers, UpdatesThatAreSkippedLeaveNoTrace) {
  for (const auto& update : {update_unless, restore_where})
    for (const bool skip : {false, true}) {
      auto w = at::tensor({1.0f, 2.0f}).requires_grad_(true), v = at::zeros({2});
      update(at::full({}, skip, at::kBool), {w, v}, [&] {
        w.detach().div_(0);
        v.add_(1);
      });
      EXPECT_EQ(w.isfinite().all().item<bool>(), skip);
      EXPECT_EQ(w[0].item<float>() == 1, skip);
      EXPECT_EQ(v[1].item<float>(), skip ? 0 : 1);
    }
}

TEST(Optimizers, StateCarriesEverything) {
  const auto gradient = [](int t) {
    return std::vector{at::tensor({std::sin(static_cast<float>(t)), 1.0f})};
  };
  auto a = at::tensor({1.0f, 2.0f}), b = a.clone();
  Adam unbroken({{"w", a}}, 0.5, 0.9);
  for (int t = 0; t < 6; ++t) unbroken.step(gradient(t), 0.1);
  Adam first({{"w", b}}, 0.5, 0.9);
  for (int t = 0; t < 3; ++t) first.step(gradient(t), 0.1);
  Adam second({{"w", b}}, 0.5, 0.9);
  const auto from = first.state();
  auto to = second.state();
  for (std::size_t i = 0; i < from.size(); ++i) to[i].second.copy_(from[i].second);
  for (int t = 3; t < 6; ++t) second.step(gradient(t), 0.1);
  EXPECT_TRUE(a.equal(b));
}

TEST(PublishedSearch, DoublesThenBisects) {
  // 1, 2, 4, 8, 16 reach 0.016; then 12 (above), 10 (below), 11 (above), 10.5 (hit).
  std::vector<double> tried;
  const auto linear = [&](double k) {
    tried.push_back(k);
    return k / 1000;
  };
  EXPECT_DOUBLE_EQ(published_factor(linear, 0.0105), 10.5);
  EXPECT_EQ(tried, (std::vector<double>{1, 2, 4, 8, 16, 12, 10, 11, 10.5}));
}

TEST(PublishedSearch, EndsAfterFiveBisectionsEvenBelowTheTarget) {
  const auto jump = [](double k) { return k >= 15.9 ? 0.5 : 0.0; };
  EXPECT_DOUBLE_EQ(published_factor(jump, 0.1), 15.75);  // 12, 14, 15, 15.5, 15.75: never reached
}

TEST(PublishedSearch, LeavesAStepAloneThatSufficesOrNeverWill) {
  EXPECT_EQ(published_factor([](double) { return 0.2; }, 0.1), 1);
  EXPECT_EQ(published_factor([](double) { return 0.0; }, 0.1), 1);
}

}  // namespace
}  // namespace zsq::train
