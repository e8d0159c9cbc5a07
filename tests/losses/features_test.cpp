// SPDX-License-Identifier: Apache-2.0
#include "losses/features.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "core/error.h"
#include "tests/support/seed_each_test.h"

namespace zsq::losses::features_test {
namespace {

using Term = at::Tensor (*)(const std::vector<at::Tensor>&, const std::vector<at::Tensor>&);

void expect_slope(Term term) {
  const auto teacher = at::randn({2, 3, 2, 2});
  auto x = at::randn({2, 3, 2, 2}).requires_grad_(true);
  const auto f = [&] { return term({x, x.mul(2)}, {teacher, teacher}); };
  f().backward();
  const auto gradient = x.grad().flatten();
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    auto value = x.detach().view(-1)[i];
    const float at = value.item<float>(), h = 1e-2f;
    value.fill_(at + h);
    const double up = f().item<double>();
    value.fill_(at - h);
    const double down = f().item<double>();
    value.fill_(at);
    EXPECT_NEAR(gradient[i].item<double>(), (up - down) / (2 * h), 2e-3) << i;
  }
}

TEST(FeatureError, SumsTheMeansOverTheMaps) {
  const auto a = at::tensor({1.0f, 2.0f, 3.0f, 4.0f}).view({1, 2, 1, 2});
  const auto b = at::tensor({1.0f, 0.0f, 3.0f, 1.0f}).view({1, 2, 1, 2});
  const auto c = at::tensor({5.0f}).view({1, 1, 1, 1}), d = at::tensor({3.0f}).view({1, 1, 1, 1});
  EXPECT_FLOAT_EQ(feature_error({a, c}, {b, d}).item<float>(), (4 + 9) / 4.0f + 4);
  expect_slope(feature_error);
}

// Squared errors 4 + 9, divided by the squared deviations of the teacher's values.
TEST(RelativeFeatureError, ComparesEachImagesErrorWithItsSpread) {
  const auto a = at::tensor({1.0f, 2.0f, 3.0f, 4.0f}).view({1, 2, 1, 2});
  const auto b = at::tensor({1.0f, 0.0f, 3.0f, 1.0f}).view({1, 2, 1, 2});  // mean 1.25
  const double spread = 1 + 0 + 9 + 1 - 4 * 1.25 * 1.25;
  EXPECT_NEAR(relative_feature_error({a}, {b}).item<double>(), 13 / spread, 1e-6);
  // The size of a map does not count, an image without spread counts nothing, maps are averaged.
  EXPECT_NEAR(relative_feature_error({a * 100}, {b * 100}).item<double>(), 13 / spread, 1e-5);
  const auto twice =
      relative_feature_error({at::cat({a, a}), b}, {at::cat({b, at::ones_like(b)}), b});
  EXPECT_NEAR(twice.item<double>(), 13 / spread / 4, 1e-6);
  expect_slope(relative_feature_error);
}

TEST(ChannelAttentionError, ComparesWhichChannelsAreStrong) {
  // Mean squares per channel 9, 16 | 0, 4 against 1, 0 | 0, 1.
  const auto a = at::tensor({3.0f, -3.0f, 4.0f, 4.0f, 0.0f, 0.0f, -2.0f, 2.0f}).view({2, 2, 1, 2});
  const auto b = at::tensor({1.0f, 1.0f, 0.0f, 0.0f, 0.0f, 0.0f, 1.0f, -1.0f}).view({2, 2, 1, 2});
  const double norm = std::sqrt(81.0 + 256);
  const double expected = (std::pow(9 / norm - 1, 2) + std::pow(16 / norm, 2)) / 4;
  EXPECT_NEAR(channel_attention_error({a}, {b}).item<double>(), expected, 1e-6);
  // Neither sign nor size of an image's map counts, and an empty map is no NaN.
  EXPECT_NEAR(channel_attention_error({a.mul(-7)}, {b}).item<double>(), expected, 1e-6);
  const auto none = at::zeros({2, 2, 1, 2});
  EXPECT_EQ(channel_attention_error({none}, {none}).item<double>(), 0);
  expect_slope(channel_attention_error);
}

// Against the definition: weights from the gradient of the class's logit, averaged over places.
TEST(GradCamError, IsThatOfTheClassActivationMaps) {
  const auto classifier = at::randn({4, 3}), targets = at::randn({2, 4}).softmax(1);
  const auto cam = [&](const at::Tensor& values) {
    const auto map = values.detach().requires_grad_(true);
    const auto logits = map.mean({2, 3}).matmul(classifier.t());
    logits.gather(1, targets.argmax(1, true)).sum().backward();
    return map.grad().mean({2, 3}, true).mul(map).sum(1).relu().detach();
  };
  const auto student = at::randn({2, 3, 5, 2}), teacher = at::randn({2, 3, 5, 2});
  const auto expected = cam(student).sub(cam(teacher)).square().mean();
  EXPECT_GT(expected.item<double>(), 0);
  EXPECT_NEAR(grad_cam_error(student, teacher, targets, classifier).item<double>(),
              expected.item<double>(), 1e-6);
  EXPECT_THROW(grad_cam_error(student, teacher, targets, at::randn({4, 2})), Error);
}

TEST(FeatureTerms, LeaveTheTeacherAlone) {
  const auto student = at::randn({1, 2, 2, 2}).requires_grad_(true);
  const auto teacher = at::randn({1, 2, 2, 2}).requires_grad_(true);
  for (const Term term :
       {Term(feature_error), Term(relative_feature_error), Term(channel_attention_error)}) {
    term({student}, {teacher}).backward();
    EXPECT_FALSE(teacher.grad().defined());
    EXPECT_THROW(term({student}, {}), Error);
    EXPECT_THROW(term({}, {}), Error);
  }
}

}  // namespace
}  // namespace zsq::losses::features_test
