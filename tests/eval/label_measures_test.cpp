// SPDX-License-Identifier: Apache-2.0
#include "eval/label_measures.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace zsq::eval {
namespace {

at::Tensor columns(std::vector<std::vector<float>> of_labels) {
  auto all = at::zeros({static_cast<std::int64_t>(of_labels[0].size()),
                        static_cast<std::int64_t>(of_labels.size())});
  for (std::size_t k = 0; k < of_labels.size(); ++k)
    all.select(1, static_cast<std::int64_t>(k)).copy_(at::tensor(of_labels[k]));
  return all;
}

// Worked by hand: of the first label the images with it are ranked 1st and 3rd, of the second
// 2nd; no image has the third.
TEST(LabelMeasures, AreThoseWorkedByHand) {
  const auto scores = columns({{3, 2, 1, -1}, {4, 5, -2, -3}, {-1, -1, -1, -1}});
  const auto labels = columns({{1, 0, 1, 0}, {1, 0, 0, 0}, {0, 0, 0, 0}}).gt(0);
  const LabelMeasures found = measure_labels(scores, labels);
  EXPECT_NEAR(found.mean_average_precision, 100 * ((1 + 2.0 / 3) / 2 + 0.5) / 2, 1e-9);
  EXPECT_NEAR(found.accuracy, 100 * 10.0 / 12, 1e-9);
  // {1, 2} of {1, 2}, {1, 2} of {}, {1} of {1}, {} of {}
  EXPECT_NEAR(found.f1, 100 * (1.0 + 0 + 1 + 1) / 4, 1e-9);
}

// Images of the same score are found together, in whatever order they come.
TEST(LabelMeasures, TiesHaveNoOrder) {
  for (const auto& labels : {std::vector<float>{1, 0, 0, 1}, std::vector<float>{0, 0, 1, 1}})
    EXPECT_NEAR(measure_labels(at::zeros({4, 1}), columns({labels}).gt(0)).mean_average_precision,
                50, 1e-9);
}

// Most labels are off and on the right side: only the other two measures see what is lost.
TEST(LabelMeasures, AllOffIsNoGoodNetwork) {
  const auto labels = at::zeros({20, 20}).fill_diagonal_(1).gt(0);
  const LabelMeasures found = measure_labels(at::zeros({20, 20}).sub(5), labels);
  EXPECT_NEAR(found.accuracy, 95, 1e-9);
  EXPECT_NEAR(found.f1, 0, 1e-9);
  EXPECT_NEAR(found.mean_average_precision, 5, 1e-9);
  EXPECT_EQ(measure_labels(at::zeros({2, 2}), at::zeros({2, 2}).gt(0)).mean_average_precision, 0);
}

}  // namespace
}  // namespace zsq::eval
