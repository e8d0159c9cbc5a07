// SPDX-License-Identifier: Apache-2.0
#include "pipeline/sysnoise/graph_variants.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "models/execute.h"

namespace zsq::pipeline {
namespace {

using models::Graph;
using models::Model;

Graph image_graph(std::int64_t side) {
  Graph graph;
  graph.input_shape = {2, side, side};
  graph.input = graph.add({"image", models::Input{}, {}});
  return graph;
}

models::Shape output_shape(const Graph& graph) {
  return models::infer_shapes(graph, {}).at(static_cast<std::size_t>(graph.output));
}

Graph pooled(std::int64_t stride) {
  Graph graph = image_graph(112);
  graph.output =
      graph.add({"pool", models::MaxPool{{3, 3}, {stride, stride}, {1, 1, 1, 1}}, {graph.input}});
  return graph;
}

TEST(GraphVariants, CeilModeAddsARowAndAColumn) {
  EXPECT_EQ(output_shape(pooled(2)), (models::Shape{1, 2, 56, 56}));
  const auto other = other_ceil_mode(pooled(2));
  ASSERT_TRUE(other);
  EXPECT_EQ(output_shape(*other), (models::Shape{1, 2, 57, 57}));
  EXPECT_FALSE(other_ceil_mode(pooled(1)));
}

// A convolution whose padding stands at the bottom and on the right, as SAME puts it.
Model same_convolution() {
  Model model;
  model.graph = image_graph(8);
  model.parameters.set("w", at::randn({3, 2, 3, 3}));
  model.graph.output = model.graph.add(
      {"conv", models::Conv2d{{2, 2}, {0, 0, 1, 1}}, {model.graph.input}, {{"weight", "w"}}});
  return model;
}

TEST(GraphVariants, PaddingOnTheOtherSide) {
  const Model model = same_convolution();
  const auto other = other_padding_side(model.graph);
  ASSERT_TRUE(other);
  const auto image = at::randn({1, 2, 8, 8});
  const auto got = models::execute(*other, model.parameters, image);
  const auto expected =
      at::conv2d(at::constant_pad_nd(image, {1, 0, 1, 0}), model.parameters.at("w"), {}, 2);
  EXPECT_LT((got - expected).abs().max().item<float>(), 1e-5);
  EXPECT_FALSE(other_padding_side(pooled(2)));
}

TEST(GraphVariants, RoundsWeightsAndValues) {
  const Model model = same_convolution();
  const auto image = at::randn({1, 2, 8, 8});
  const auto half = [](const at::Tensor& x) { return x.to(at::kHalf).to(at::kFloat); };
  const Model changed = rounded(model, at::kHalf);
  const auto got = models::execute(changed.graph, changed.parameters, image);
  const auto expected = half(at::conv2d(at::constant_pad_nd(half(image), {0, 1, 0, 1}),
                                        half(model.parameters.at("w")), {}, 2));
  EXPECT_TRUE(got.equal(expected));
  EXPECT_FALSE(got.equal(models::execute(model.graph, model.parameters, image)));
  EXPECT_TRUE(has_quantizers(changed.graph));
  EXPECT_FALSE(has_quantizers(model.graph));
}

// Rounded between convolution and BatchNorm, values of 4096.5 would lose their fraction.
TEST(GraphVariants, ABatchNormIsPartOfItsLayer) {
  Model model;
  model.graph = image_graph(1);
  model.parameters.set("w", at::eye(2).view({2, 2, 1, 1}));
  model.parameters.set("b", at::full({2}, 4096.0));
  for (const char* name : {"gamma", "variance"}) model.parameters.set(name, at::ones({2}));
  model.parameters.set("beta", at::zeros({2}));
  model.parameters.set("mean", at::full({2}, 4096.0));
  const auto conv = model.graph.add(
      {"conv", models::Conv2d{}, {model.graph.input}, {{"weight", "w"}, {"bias", "b"}}});
  model.graph.output = model.graph.add(
      {"bn",
       models::BatchNorm{0},
       {conv},
       {{"gamma", "gamma"}, {"beta", "beta"}, {"mean", "mean"}, {"variance", "variance"}}});
  const auto image = at::full({1, 2, 1, 1}, 0.5);
  const Model changed = rounded(model, at::kHalf);
  EXPECT_TRUE(models::execute(changed.graph, changed.parameters, image).equal(image));
}

}  // namespace
}  // namespace zsq::pipeline
