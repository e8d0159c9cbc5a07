// SPDX-License-Identifier: Apache-2.0
// Several outputs and outputs with places, against loops and numbers by hand.
#include "losses/one_output.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/autograd.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "losses/divergence.h"
#include "tests/support/seed_each_test.h"

namespace zsq::losses {
namespace {

using models::Output, models::OutputFunction;

double value(const at::Tensor& t) { return t.item<double>(); }

const Output kMap{"map", {3, 2, 2}, OutputKind::map, OutputFunction::none, 1};
const Output kLastClasses{"conf", {4, 3}, OutputKind::map, OutputFunction::softmax, 2};
const Output kScores{"scores", {5, 2}, OutputKind::scores, OutputFunction::sigmoid, 1};
const Output kBoxes{"boxes", {5, 4}, OutputKind::values, OutputFunction::none, 1};

// Mean over the places of KL(softmax(t) || softmax(s)), by loops over numbers.
double kl_per_place(const at::Tensor& s, const at::Tensor& t, std::int64_t classes,
                    std::int64_t places, bool classes_first) {
  double sum = 0;
  for (std::int64_t n = 0; n < s.size(0); ++n)
    for (std::int64_t p = 0; p < places; ++p) {
      const auto at_class = [&](const at::Tensor& x, std::int64_t c) {
        return std::exp(x[n][classes_first ? c * places + p : p * classes + c].item<double>());
      };
      double all_s = 0, all_t = 0;
      for (std::int64_t c = 0; c < classes; ++c) {
        all_s += at_class(s, c);
        all_t += at_class(t, c);
      }
      for (std::int64_t c = 0; c < classes; ++c) {
        const double q = at_class(s, c) / all_s, r = at_class(t, c) / all_t;
        sum += r * std::log(r / q);
      }
    }
  return sum / static_cast<double>(s.size(0) * places);
}

TEST(OneOutput, OfAMapIsKlPerPlaceAndTheShareOfEqualClasses) {
  const auto s = at::randn({6, 12}), t = at::randn({6, 12});
  EXPECT_NEAR(value(divergence_of(kMap, s, t, 1, 6)), kl_per_place(s, t, 3, 4, true), 1e-5);
  EXPECT_NEAR(value(divergence_of(kLastClasses, s, t, 1, 6)), kl_per_place(s, t, 3, 4, false),
              1e-5);
  // Place 0 of image 0 changes its class and no other.
  auto moved = t.clone();
  const auto largest =
      at::tensor({t[0][0].item<float>(), t[0][4].item<float>(), t[0][8].item<float>()})
          .argmax()
          .item<std::int64_t>();
  moved[0][largest * 4] -= 100;
  EXPECT_NEAR(value(agreement_of(kMap, moved, t)), 23.0 / 24, 1e-9);
}

TEST(OneOutput, OfScoresWithPlacesIsThatOfEachAndTheirOverlap) {
  const auto s = at::randn({6, 10}), t = at::randn({6, 10});
  EXPECT_NEAR(value(divergence_of(kScores, s, t, 1, 6)),
              value(divergence(OutputKind::scores, s, t, 1, 6)) / 10, 1e-6);
  // One score of 0.9 among nine of 0.01: what is lost is nearly all.
  auto detects = at::zeros({1, 10}).add(std::log(0.01 / 0.99)), lost = detects.clone();
  detects[0][3] = std::log(9.0);
  EXPECT_NEAR(value(agreement_of(kScores, detects, detects)), 1, 1e-9);
  const double p = 0.9, low = 0.01;
  const double by_hand = 1 - (p - low) * (p - low) / (p * p + low * low + 9 * 2 * low * low);
  EXPECT_NEAR(value(agreement_of(kScores, lost, detects)), by_hand, 1e-6);
  EXPECT_LT(by_hand, 0.04);
}

// Constants of the places do not make two networks alike.
TEST(OneOutput, OfValuesWithPlacesIsTheSimilarityOfWhatVaries) {
  const auto anchors = at::randn({1, 20}).mul(1000);
  const auto t = at::randn({8, 20}), other = at::randn({8, 20});
  const auto same = value(agreement_of(kBoxes, t.add(anchors), t.add(anchors)));
  EXPECT_NEAR(same, 1, 1e-6);
  EXPECT_LT(value(agreement_of(kBoxes, other.add(anchors), t.add(anchors))), 0.5);
  EXPECT_GT(value(agreement_of(OutputKind::values, other.add(anchors), t.add(anchors))), 0.999);
}

TEST(OneOutput, ARowOfSeveralIsTheSumAndTheLowest) {
  const OutputRow row({kMap, kScores, kBoxes});
  const auto s = at::randn({6, 42}), t = at::randn({6, 42});
  const auto part = [](const at::Tensor& x, std::int64_t first, std::int64_t length) {
    return x.narrow(1, first, length);
  };
  const double map = value(divergence_of(kMap, part(s, 0, 12), part(t, 0, 12), 1, 6)),
               scores = value(divergence_of(kScores, part(s, 12, 10), part(t, 12, 10), 1, 6)),
               boxes = value(divergence_of(kBoxes, part(s, 22, 20), part(t, 22, 20), 1, 6));
  EXPECT_NEAR(value(divergence(row, s, t, 1, 6)), map + scores + boxes, 1e-5);
  const auto measures = measures_of_outputs(row, s, t);
  ASSERT_EQ(measures.size(), 3U);
  double lowest = 1;
  for (const auto& one : measures) lowest = std::min(lowest, one.agreement);
  EXPECT_EQ(value(agreement(row, s, t)), lowest);
  EXPECT_EQ(measures[1].name, "scores");
  EXPECT_EQ(measures[1].kind, "score_map");
  EXPECT_NEAR(measures[2].divergence, boxes, 1e-6);
  // No labels of the whole image.
  EXPECT_EQ(label_count(row, 42), 1);
  EXPECT_EQ(soft_targets(row, t).sizes(), (std::vector<std::int64_t>{6, 1}));
  EXPECT_EQ(value(cross_entropy(row, s, t)), 0);
  EXPECT_THROW(class_logits(row, s), Error);
  EXPECT_EQ(most_frequent_share(row, t), 0);
  EXPECT_EQ(most_frequent_share(OutputRow({kBoxes}), at::zeros({6, 20})), 1);
}

TEST(OneOutput, EveryPartTeachesTheStudent) {
  const OutputRow row({kMap, kScores, kBoxes});
  const auto s = at::randn({6, 42}).requires_grad_(true);
  divergence(row, s, at::randn({6, 42}), 2, 6).backward();
  for (std::int64_t i = 0; i < 42; ++i)
    EXPECT_GT(s.grad().select(1, i).abs().max().item<double>(), 0) << i;
}

// Twice what noise at the output adds: E[grad^2] over draws against the divergence itself.
TEST(OneOutput, DrawnLikelihoodsMeasureWhatNoiseAdds) {
  auto draws = at::detail::createCPUGenerator(7);
  for (const auto& output : {kMap, kScores}) {
    const OutputRow row({output});
    const auto t = at::randn({1, output.length()});
    auto squares = at::zeros({output.length()}, at::kDouble);
    constexpr int kDraws = 4000;
    for (int i = 0; i < kDraws; ++i) {
      const auto x = t.clone().requires_grad_(true);
      drawn_log_likelihood(row, x, draws).backward();
      squares += x.grad()[0].to(at::kDouble).square() / kDraws;
    }
    for (const std::int64_t i : {0, 3}) {
      constexpr double kStep = 0.05;
      auto noisy = t.clone();
      noisy[0][i] += kStep;
      const double added = value(divergence(row, noisy, t, 1, 1));
      EXPECT_NEAR(squares[i].item<double>() * kStep * kStep / 2 / added, 1, 0.15) << output.name;
    }
  }
}

}  // namespace
}  // namespace zsq::losses
