// SPDX-License-Identifier: Apache-2.0
#include "analysis/feature_map.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/analysis/linear.h"

namespace zsq::analysis {
namespace {

TEST(FeatureMap, FeaturesAreWhatTheClassifierReads) {
  const LinearCase net;
  EXPECT_TRUE(features_of(net.teacher, net.sample.images).allclose(net.features, 1e-5, 1e-6));
}

// Four features, two of them copies of one number and two of another that is independent: the axes
// are those numbers, whatever their units.
TEST(FeatureMap, ProjectionFindsTheWidestAxes) {
  const auto random = at::detail::createCPUGenerator(4);
  const auto a = at::randn({500}, random, at::kFloat), b = at::randn({500}, random, at::kFloat);
  const auto features = at::stack({a * 3 + 7, a * 5, a * 2, b * 100, b}, 1);
  const Projection projection = fit_projection(features);
  EXPECT_NEAR(projection.explained, 1, 1e-9);
  const auto places = project(projection, features);
  ASSERT_EQ(places.sizes(), (std::vector<std::int64_t>{500, 2}));
  const auto correlation = [](const at::Tensor& x, const at::Tensor& y) {
    const auto p = x.to(at::kDouble) - x.to(at::kDouble).mean(),
               q = y.to(at::kDouble) - y.to(at::kDouble).mean();
    return std::abs((p.dot(q) / (p.dot(p) * q.dot(q)).sqrt()).item<double>());
  };
  EXPECT_GT(correlation(places.select(1, 0), a), 0.99);  // three copies are wider than two
  EXPECT_GT(correlation(places.select(1, 1), b), 0.99);
  EXPECT_NEAR(places.mean().item<double>(), 0, 1e-9);
}

TEST(FeatureMap, PairsAreCoveredByImagesBetweenTheirClasses) {
  const auto p = [](float a, float b, float c, float d) { return at::tensor({a, b, c, d}).log(); };
  const auto logits = at::stack({
      p(0.55f, 0.40f, 0.03f, 0.02f),  // between 0 and 1
      p(0.40f, 0.50f, 0.05f, 0.05f),  // the same pair
      p(0.90f, 0.05f, 0.03f, 0.02f),  // in class 0
      p(0.10f, 0.05f, 0.45f, 0.40f),  // between 2 and 3
      p(0.65f, 0.30f, 0.03f, 0.02f),  // too far from the middle
  });
  const PairCoverage found = pair_coverage(logits, 0.5);
  EXPECT_EQ(found.pairs, 6);
  EXPECT_EQ(found.covered, 2);
  EXPECT_NEAR(found.between, 3.0 / 5, 1e-12);
  EXPECT_EQ(found.images[0][1], 2);
  EXPECT_EQ(found.images[1][0], 2);
  EXPECT_EQ(found.images[2][3], 1);
  EXPECT_EQ(pair_coverage(logits, 0.4).images[0][1], 3);
}

}  // namespace
}  // namespace zsq::analysis
