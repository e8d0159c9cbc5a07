// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/networks.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "cuda_kernels/channel_moments.h"
#include "models/execute.h"
#include "models/load.h"
#include "tests/benchmarks/networks.h"

namespace zsq::benchmarks {
namespace {

// With the running statistics of a batch, BatchNorm leaves mean 0 and variance 1 of that batch, so
// of another one nearly so, in every layer however deep.
TEST(Networks, StatisticsFollowTheLayersBefore) {
  const at::NoGradGuard no_grad;
  const auto model = residual_network(8, 2, 16, 3);
  models::Taps taps;
  for (std::size_t id = 0; id < model.graph.nodes.size(); ++id)
    if (models::is<models::BatchNorm>(model.graph.nodes[id]))
      taps.nodes.push_back(static_cast<models::NodeId>(id));
  ASSERT_EQ(taps.nodes.size(), 15u);  // stem, 6 blocks of 2, 2 shortcuts
  models::execute(model.graph, model.parameters, at::ones({64, 3, 16, 16}).normal_(), &taps);
  for (const auto& normalised : taps.values) {
    const auto [mean, variance] = cuda_kernels::channel_moments(normalised);
    EXPECT_LT(mean.abs().max().item<double>(), 0.5);
    EXPECT_LT(variance.sub(1).abs().max().item<double>(), 0.6);
  }
}

TEST(Networks, DepthAndWidthAreThoseAskedFor) {
  for (const auto& [units, layers] : {std::pair{1, 8}, {3, 20}}) {
    const auto model = residual_network(4, units, 8, 1);
    int convolutions = 0, shortcuts = 0;
    for (const auto& node : model.graph.nodes) {
      if (!models::is<models::Conv2d>(node)) continue;
      ++convolutions;
      shortcuts += node.name.ends_with("shortcut") ? 1 : 0;
    }
    EXPECT_EQ(convolutions - shortcuts + 1, layers);
    EXPECT_EQ(model.parameters.at("fc.weight").size(1), 16);
    EXPECT_EQ(model.graph.input_shape[1], 8);
  }
}

TEST(Networks, ABuiltInOneTakesAnotherImageSize) {
  const auto model = built_in("resnet20_cifar10", 16, 1);
  const auto own = built_in("resnet20_cifar10", 0, 1);
  EXPECT_EQ(model.graph.input_shape[2], 16);
  EXPECT_EQ(own.graph.input_shape[2], 32);
  const auto macs = [](const models::Model& m) { return models::multiply_accumulates(m)[1]; };
  EXPECT_EQ(4 * macs(model), macs(own));
}

}  // namespace
}  // namespace zsq::benchmarks
