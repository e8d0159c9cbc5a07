// SPDX-License-Identifier: Apache-2.0
#include "generator/swing.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/reflection_pad2d.h>
#include <gtest/gtest.h>

#include <set>

#include "models/execute.h"

namespace zsq::generator {
namespace {

models::Model two_convolutions(std::int64_t stride) {
  models::Model model;
  auto& graph = model.graph;
  graph.input_shape = {2, 8, 6};
  graph.input = graph.add({"input", models::Input{}, {}});
  model.parameters.set("a", at::randn({3, 2, 3, 3}));
  model.parameters.set("b", at::randn({4, 3, 3, 3}));
  const auto x =
      graph.add({"a", models::Conv2d{.pads = {1, 1, 1, 1}}, {graph.input}, {{"weight", "a"}}});
  graph.output = graph.add({"b",
                            models::Conv2d{.stride = {stride, stride}, .pads = {1, 1, 1, 1}},
                            {x},
                            {{"weight", "b"}}});
  return model;
}

TEST(Swing, ShiftsWhatAStridedConvolutionReads) {
  const auto model = two_convolutions(2);
  const auto images = at::randn({2, 2, 8, 6});
  models::Taps middle{{model.graph.id_of("a")}, {}};
  models::execute(model.graph, model.parameters, images, &middle);
  auto second = two_convolutions(2);
  second.graph.nodes.clear();
  second.graph.input_shape = {3, 8, 6};
  second.graph.input = second.graph.add({"input", models::Input{}, {}});
  second.graph.output = second.graph.add({"b",
                                          models::Conv2d{.stride = {2, 2}, .pads = {1, 1, 1, 1}},
                                          {second.graph.input},
                                          {{"weight", "b"}}});

  std::set<std::pair<int, int>> seen;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const auto graph = swing(model.graph, at::detail::createCPUGenerator(seed));
    ASSERT_EQ(graph.nodes.size(), model.graph.nodes.size() + 1);
    const auto made = models::execute(graph, model.parameters, images);
    const auto padded = at::reflection_pad2d(middle.values[0], {1, 1, 1, 1});
    int matches = 0;
    for (int dy = 0; dy < 3; ++dy)
      for (int dx = 0; dx < 3; ++dx) {
        const auto truth = models::execute(second.graph, model.parameters,
                                           padded.narrow(2, dy, 8).narrow(3, dx, 6).contiguous());
        if ((made - truth).abs().max().item<double>() > 1e-4) continue;
        ++matches;
        seen.insert({dy, dx});
      }
    EXPECT_EQ(matches, 1) << seed;
  }
  EXPECT_EQ(seen.size(), 9u);
}

TEST(Swing, LeavesUnstridedNetworksAsTheyAre) {
  const auto model = two_convolutions(1);
  const auto graph = swing(model.graph, at::detail::createCPUGenerator(0));
  EXPECT_EQ(graph.nodes.size(), model.graph.nodes.size());
  const auto images = at::randn({1, 2, 8, 6});
  EXPECT_TRUE(models::execute(graph, model.parameters, images)
                  .equal(models::execute(model.graph, model.parameters, images)));
}

}  // namespace
}  // namespace zsq::generator
