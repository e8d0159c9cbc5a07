// SPDX-License-Identifier: Apache-2.0
#include "models/channel_scales.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "models/execute.h"

namespace zsq::models::channel_scales_test {
namespace {

// conv, times a constant, plus the image.
Model scaled_block(const at::Tensor& factor) {
  Model model;
  Graph& graph = model.graph;
  graph.input_shape = {3, 5, 5};
  graph.input = graph.add({"x", Input{}, {}});
  model.parameters.set("w", at::randn({3, 3, 1, 1}));
  model.parameters.set("b", at::randn({3}));
  model.parameters.set("s", factor);
  const auto conv = graph.add({"conv", Conv2d{}, {graph.input}, {{"weight", "w"}, {"bias", "b"}}});
  const auto value = graph.add({"s", Parameter{}, {}, {{"value", "s"}}});
  const auto mul = graph.add({"mul", Mul{}, {value, conv}});
  graph.output = graph.add({"add", Add{}, {mul, graph.input}});
  return model;
}

std::int64_t products(const Model& model) {
  std::int64_t result = 0;
  for (const Node& node : model.graph.nodes) result += is<Mul>(node) || is<Parameter>(node);
  return result;
}

void expect_same(const Model& before, const Model& after) {
  const auto x = at::randn({2, 3, 5, 5});
  EXPECT_TRUE(at::allclose(execute(after.graph, after.parameters, x),
                           execute(before.graph, before.parameters, x), 1e-5, 1e-6));
}

TEST(ChannelScales, BecomePartOfTheLayer) {
  for (const auto& factor :
       {at::randn({3, 1, 1}), at::randn({1, 3, 1, 1}), at::full({}, 0.25), at::full({1}, -2.0)}) {
    const Model before = scaled_block(factor);
    Model after = before;
    fold_channel_scales(after);
    EXPECT_EQ(products(after), 0) << factor.sizes();
    EXPECT_EQ(after.graph.nodes.size(), 3u);
    EXPECT_EQ(after.parameters.names(), (std::vector<std::string>{"w", "b"}));
    expect_same(before, after);
  }
}

TEST(ChannelScales, OfAnotherShapeOrAnotherReaderStay) {
  for (Model before : {scaled_block(at::randn({3, 5, 1})), scaled_block(at::randn({5}))}) {
    Model after = before;
    fold_channel_scales(after);
    EXPECT_EQ(products(after), 2);
  }
  Model before = scaled_block(at::randn({3, 1, 1}));
  before.graph.nodes.back().inputs[1] = before.graph.id_of("conv");
  Model after = before;
  fold_channel_scales(after);
  EXPECT_EQ(products(after), 2);
  expect_same(before, after);
}

// Two layers with one weight, of which one is scaled.
TEST(ChannelScales, LeaveASharedWeightToTheOther) {
  Model before = scaled_block(at::randn({3, 1, 1}));
  Graph& graph = before.graph;
  const auto other =
      graph.add({"other", Conv2d{}, {graph.output}, {{"weight", "w"}, {"bias", "b"}}});
  graph.output = other;
  Model after = before;
  fold_channel_scales(after);
  EXPECT_EQ(products(after), 0);
  expect_same(before, after);
}

TEST(ChannelScales, OfALinearLayer) {
  Model before;
  Graph& graph = before.graph;
  graph.input_shape = {4, 1, 1};
  graph.input = graph.add({"x", Input{}, {}});
  before.parameters.set("w", at::randn({2, 4}));
  before.parameters.set("s", at::randn({2}));
  const auto flat = graph.add({"flat", Flatten{}, {graph.input}});
  const auto linear = graph.add({"linear", Linear{}, {flat}, {{"weight", "w"}}});
  const auto value = graph.add({"s", Parameter{}, {}, {{"value", "s"}}});
  graph.output = graph.add({"mul", Mul{}, {linear, value}});
  Model after = before;
  fold_channel_scales(after);
  EXPECT_EQ(products(after), 0);
  const auto x = at::randn({3, 4, 1, 1});
  EXPECT_TRUE(at::allclose(execute(after.graph, after.parameters, x),
                           execute(before.graph, before.parameters, x), 1e-5, 1e-6));
}

}  // namespace
}  // namespace zsq::models::channel_scales_test
