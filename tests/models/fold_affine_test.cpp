// SPDX-License-Identifier: Apache-2.0
#include "models/fold_affine.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "models/execute.h"
#include "models/load.h"

namespace zsq::models::fold_affine_test {
namespace {

// A depthwise convolution, a product with `scale` if it is defined, a sum with `shift`.
Model network(const at::Tensor& scale, const at::Tensor& shift, bool bias,
              bool read_twice = false) {
  Model model;
  Graph& graph = model.graph;
  graph.input_shape = {3, 5, 5};
  graph.input = graph.add({"x", Input{}, {}});
  model.parameters.set("w", at::randn({3, 1, 3, 3}));
  Node conv{"dw", Conv2d{.pads = {1, 1, 1, 1}, .groups = 3}, {graph.input}, {{"weight", "w"}}};
  if (bias) {
    model.parameters.set("b", at::randn({3}));
    conv.params["bias"] = "b";
  }
  const NodeId layer = graph.add(conv);
  NodeId last = layer;
  const auto constant = [&](const char* name, const at::Tensor& value) {
    model.parameters.set(name, value);
    return graph.add({name, Parameter{}, {}, {{"value", name}}});
  };
  if (scale.defined()) {
    const NodeId s = constant("s", scale);
    last = graph.add({"mul", Mul{}, {last, s}});
  }
  const NodeId t = constant("t", shift);
  last = graph.add({"add", Add{}, {t, last}});
  graph.output = graph.add({"relu6", Clip{0, 6}, {last}});
  if (read_twice) graph.output = graph.add({"again", Add{}, {graph.output, layer}});
  return model;
}

void expect_same(const Model& before, const Model& after) {
  const auto x = at::randn({2, 3, 5, 5});
  EXPECT_TRUE(at::allclose(execute(after.graph, after.parameters, x),
                           execute(before.graph, before.parameters, x), 1e-5, 1e-5));
}

TEST(FoldAffine, TheConvolutionTakesScaleAndShift) {
  for (const bool bias : {false, true})
    for (const auto& scale : {at::Tensor(), at::randn({1, 3, 1, 1}), at::randn({1})}) {
      const Model before = network(scale, at::randn({3, 1, 1}), bias);
      Model after = before;
      fold_affine_pairs(after);
      EXPECT_EQ(after.graph.nodes.size(), 3U);
      EXPECT_EQ(after.parameters.names().size(), 2U);
      expect_same(before, after);
      const auto census = count_batch_norm(after);
      EXPECT_EQ(census.look_folded.size(), scale.defined() ? 1U : 0U);
    }
}

TEST(FoldAffine, WhatIsReadTwiceOrVariesByPlaceStays) {
  for (const Model& before : {network(at::randn({1, 3, 1, 1}), at::randn({3, 1, 1}), true, true),
                              network(at::Tensor(), at::randn({3, 5, 5}), true),
                              network(at::Tensor(), at::randn({5}), true)}) {
    Model after = before;
    fold_affine_pairs(after);
    EXPECT_EQ(after.graph.nodes.size(), before.graph.nodes.size());
    expect_same(before, after);
  }
}

}  // namespace
}  // namespace zsq::models::fold_affine_test
