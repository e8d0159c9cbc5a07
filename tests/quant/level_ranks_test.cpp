// SPDX-License-Identifier: Apache-2.0
#include "quant/level_ranks.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "cuda_kernels/layer_fake_quant.h"
#include "models/execute.h"
#include "quant/weight_layers.h"
#include "tests/support/network_builder.h"
#include "tests/support/quantized.h"

namespace zsq::quant {
namespace {

QuantOptions with_tables() {
  QuantOptions options;
  options.weights.level_tables = {LevelTable::power_of_two, LevelTable::learned};
  return options;
}

// The rank by the header's formula, the nearest level by looking at all of them.
TEST(LevelRanks, RoundWhereTheNearestLevelChanges) {
  const std::vector<float> levels{-4, -1, 0, 2.5, 7};
  const auto table = at::tensor(levels).view({1, 5});
  for (float w = -5; w < 8; w += 0.01f) {
    int nearest = 0, k = 0;
    for (int i = 1; i < 5; ++i) {
      if (std::fabs(levels[i] - w) < std::fabs(levels[nearest] - w)) nearest = i;
      if (i < 4 && levels[i] <= w) k = i;
    }
    const float rank = static_cast<float>(k) + (w - levels[k]) / (levels[k + 1] - levels[k]);
    const auto quantized =
        cuda_kernels::fake_quant_layers({{at::tensor({rank}).view({1, 1}),
                                          0,
                                          4,
                                          cuda_kernels::Surrogate::clipped,
                                          {at::tensor({1.f}), at::tensor({0.f})}}})[0];
    EXPECT_EQ(weights_of_ranks(quantized, table).item<float>(), levels[nearest]) << w;
    EXPECT_EQ(ranks_of_weights(at::tensor({w}).view({1, 1}), table).item<float>(), nearest) << w;
  }
}

// Distances of -2, -0.5, 0, 1, 1 (a shorter table, filled up): 1.5, mean of 1.5 and 0.5, mean of
// 0.5 and 1, 1, none.
TEST(LevelRanks, AStepOnTheWeightBecomesAStepOfTheRank) {
  const auto levels = at::tensor({-2.f, -0.5f, 0.f, 1.f, 1.f}).view({1, 5});
  const auto ranks = at::tensor({0.f, 1.f, 2.f, 3.f, 4.f}).view({1, 5}).requires_grad_(true);
  const auto gradient =
      torch::autograd::grad({(weights_of_ranks(ranks, levels) * 3).sum()}, {ranks})[0];
  EXPECT_TRUE(
      gradient.allclose(at::tensor({3 / 1.5f, 3 / 1.f, 3 / 0.75f, 3 / 1.f, 0.f}).view({1, 5})));
}

TEST(LevelRanks, ChangeNothingThatTheNetworkComputes) {
  auto student = test::quantized(test::residual_network(), with_tables());
  const auto before = student.parameters.clone();
  const auto& shape = student.graph.input_shape;
  const auto x = test::normal({2, shape[0], shape[1], shape[2]}, 5);
  const auto logits = models::execute(student.graph, student.parameters, x);

  LevelRanks ranks(student);
  int layers = 0;
  for (const auto& site : weight_sites(student)) {
    if (site.op->spec().format != NumberFormat::ranks) continue;
    ++layers;
    const auto& rank = student.parameters.at(site.parameter);
    EXPECT_TRUE(rank.equal(rank.round()));
    EXPECT_GE(rank.min().item<float>(), 0);
    EXPECT_LE(rank.max().item<float>(), 15);
  }
  EXPECT_GT(layers, 1);
  EXPECT_TRUE(models::execute(student.graph, student.parameters, x).equal(logits));
  const auto all_at_once = with_quantized_weights(student, weight_sites(student));
  EXPECT_TRUE(models::execute(take_quantized_weights(student.graph), all_at_once, x).equal(logits));

  ranks.restore();
  EXPECT_TRUE(models::execute(student.graph, student.parameters, x).equal(logits));
  ASSERT_EQ(student.parameters.names(), before.names());
  for (const auto& name : before.names())
    EXPECT_TRUE(student.parameters.at(name).allclose(before.at(name), 1e-6, 1e-7)) << name;
}

// What training made of the ranks is what is left, on levels of the tables.
TEST(LevelRanks, RestoreTheWeightsOfTheirRanks) {
  auto student = test::quantized(test::residual_network(), with_tables());
  LevelRanks ranks(student);
  const auto sites = weight_sites(student);
  const auto site = *std::find_if(sites.begin(), sites.end(), [](const WeightSite& s) {
    return s.op->spec().format == NumberFormat::ranks;
  });
  const auto levels = student.parameters.at(site.op->levels_name()).clone();
  auto& latent = student.parameters.at(site.parameter);
  latent = latent + 0.9;  // one rank up; the highest stay
  const auto expected = site.op->forward({latent}, student.parameters);
  ranks.restore();
  const auto& weight = student.parameters.at(site.parameter);
  EXPECT_TRUE(weight.equal(expected));
  for (std::int64_t c = 0; c < weight.size(0); ++c) {
    const auto row = weight[c].flatten().unsqueeze(1);
    EXPECT_TRUE(row.eq(levels[c].unsqueeze(0)).any(1).all().item<bool>());
  }
}

}  // namespace
}  // namespace zsq::quant
