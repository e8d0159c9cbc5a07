// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/one_hot.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "eval/evaluate.h"

namespace zsq::eval::evaluate_map_test {
namespace {

using Pixels = std::vector<std::int64_t>;

at::Tensor row(const Pixels& classes) {
  return at::tensor(classes).view({1, 1, static_cast<std::int64_t>(classes.size())});
}

// Logits [1, 4, 1, W] whose largest is the class of each pixel.
at::Tensor logits_of(const Pixels& classes) {
  return at::one_hot(row(classes), 4).movedim(3, 1).to(at::kFloat);
}

// By hand: of seven known pixels five are right. Class 0: 2 in both, 3 in either; class 1: 2 of 4;
// class 2: 1 of 2; class 3 is named by nothing.
TEST(MapCounts, CountsPixelsAndIntersectionsOverUnionsOverAllImages) {
  MapCounts counts;
  counts.add(logits_of({0, 0, 1, 1}), row({0, 0, 0, 1}));
  counts.add(logits_of({1, 1, 2, 3}), row({1, 2, 2, kVoidLabel}));
  EXPECT_NEAR(counts.pixel_accuracy(), 100 * 5.0 / 7, 1e-9);
  EXPECT_NEAR(counts.mean_iou(), 100 * (2.0 / 3 + 2.0 / 4 + 1.0 / 2) / 3, 1e-9);
  EXPECT_EQ(counts.figures().front(), std::pair(std::string("pixel_accuracy"), 500.0 / 7));
}

TEST(MapCounts, NothingKnownIsNothingRight) {
  MapCounts counts;
  counts.add(logits_of({0, 1}), row({kVoidLabel, kVoidLabel}));
  EXPECT_EQ(counts.pixel_accuracy(), 0);
  EXPECT_EQ(counts.mean_iou(), 0);
}

TEST(MapCounts, RefusesMasksThatDoNotBelongToTheNetwork) {
  MapCounts counts;
  EXPECT_THROW(counts.add(logits_of({0, 1}), row({0, 1, 2})), Error);
  EXPECT_THROW(counts.add(logits_of({0, 1}), row({0, 4})), Error);
  EXPECT_THROW(counts.add(logits_of({0, 1}), row({0, -1})), Error);
  EXPECT_THROW(counts.add(logits_of({0, 1}), at::zeros({1}, at::kLong)), Error);
}

TEST(ClassCounts, RefusesMasks) {
  ClassCounts counts;
  EXPECT_THROW(counts.add(at::zeros({1, 4}), row({0, 1})), Error);
}

}  // namespace
}  // namespace zsq::eval::evaluate_map_test
