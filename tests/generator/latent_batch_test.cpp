// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/ops/sort.h>
#include <gtest/gtest.h>

#include "generator/generator.h"
#include "tests/generator/teacher.h"

namespace zsq::generator {
namespace {

constexpr std::int64_t kClasses = 12, kFeatures = 6;

Generator with(const GeneratorOptions& options, std::uint64_t seed = 1) {
  return Generator(teacher(8, kClasses, kFeatures), options, seed);
}

at::Tensor superposed(const LatentBatch& draw) { return draw.weights.select(1, 0).ne(1); }

TEST(LatentBatch, LabelsOfARowAreDistinctAndCoverAllClasses) {
  GeneratorOptions options;
  options.superposed_labels = 5;
  const auto labels = with(options).draw(2000, 0).labels;
  const auto sorted = std::get<0>(at::sort(labels, 1));
  EXPECT_TRUE(sorted.slice(1, 1).gt(sorted.slice(1, 0, 4)).all().item<bool>());
  for (std::int64_t place = 0; place < 5; ++place) {  // each place is uniform over the classes
    const auto share = labels.select(1, place).bincount({}, kClasses).to(at::kDouble) / 2000;
    EXPECT_NEAR(share.min().item<double>(), 1.0 / kClasses, 0.03);
    EXPECT_NEAR(share.max().item<double>(), 1.0 / kClasses, 0.03);
  }
}

TEST(LatentBatch, TargetsAreTheWeightsOfTheLabels) {
  GeneratorOptions options;
  options.superposed_labels = 4;
  const auto draw = with(options).draw(500, 3);
  EXPECT_TRUE(draw.weights.sum(1).sub(1).abs().lt(1e-6).all().item<bool>());
  EXPECT_TRUE(draw.targets.sum(1).sub(1).abs().lt(1e-6).all().item<bool>());
  EXPECT_TRUE(draw.targets.gather(1, draw.labels).equal(draw.weights));
}

TEST(LatentBatch, EverySampleIsSuperposedWithProbabilityP) {
  GeneratorOptions options;
  options.superposed_share = 0.3;
  const auto share = superposed(with(options).draw(4000, 0)).to(at::kDouble).mean().item<double>();
  EXPECT_NEAR(share, 0.3, 0.03);
}

TEST(LatentBatch, AWholeBatchIsSuperposedWithProbabilityP) {
  GeneratorOptions options;
  options.superposing = Superposing::whole_batch;
  options.superposed_share = 0.3;
  const auto generator = with(options);
  int batches = 0;
  for (std::uint64_t step = 0; step < 500; ++step) {
    const auto mixed = superposed(generator.draw(8, step)).sum().item<std::int64_t>();
    EXPECT_TRUE(mixed == 0 || mixed == 8);
    batches += mixed == 8;
  }
  EXPECT_NEAR(batches / 500.0, 0.3, 0.06);
}

TEST(LatentBatch, MixingWeightsFollowTheirDistribution) {
  GeneratorOptions options;
  options.superposed_share = 1;
  options.superposed_labels = 3;
  const auto largest = [&] {
    return std::get<0>(with(options).draw(4000, 0).weights.max(1)).mean().item<double>();
  };
  const double softmax = largest();
  EXPECT_NEAR(softmax, 0.58, 0.02);  // mean of the largest of softmax of three N(0, 1)
  options.mix_weights = MixWeights::dirichlet;
  EXPECT_NEAR(largest(), 11.0 / 18, 0.02);  // flat Dirichlet of three: (1 + 1/2 + 1/3) / 3
  options.dirichlet_alpha = 0.01;
  EXPECT_GT(largest(), 0.95);
}

TEST(LatentBatch, DependsOnSeedStepAndCountOnly) {
  const auto a = with({}), b = with({}), other = with({}, 2);
  const auto first = a.draw(16, 7);
  (void)b.draw(5, 9);  // an earlier draw leaves no trace
  const auto again = b.draw(16, 7);
  EXPECT_TRUE(first.labels.equal(again.labels));
  EXPECT_TRUE(first.weights.equal(again.weights));
  EXPECT_TRUE(first.noise.equal(again.noise));
  EXPECT_FALSE(first.noise.equal(a.draw(16, 8).noise));
  EXPECT_FALSE(first.noise.equal(other.draw(16, 7).noise));
}

TEST(LatentBatch, TakesNoMoreLabelsThanClasses) {
  GeneratorOptions options;
  options.superposed_labels = 1000;
  EXPECT_EQ(with(options).draw(2, 0).labels.size(1), kClasses);
}

}  // namespace
}  // namespace zsq::generator
