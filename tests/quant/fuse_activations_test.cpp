// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "models/execute.h"
#include "quant/calibration/ranges.h"
#include "tests/support/network_builder.h"
#include "tests/support/quantized.h"

namespace zsq::quant {
namespace {

using models::NodeId;

int count(const models::Graph& graph, const std::string& op) {
  int n = 0;
  for (const auto& node : graph.nodes) n += models::op_name(node.op) == op;
  return n;
}

// Linear with BatchNorm (two dimensions), BatchNorm without Clip, ReLU6, Pad with a value of its
// own.
models::Model many_forms() {
  test::NetworkBuilder net;
  NodeId x = net.op("relu6", models::Clip{0, 6}, {net.conv_bn("stem", net.input(), 3, 8)});
  x = net.op("maxpool", models::MaxPool{{2, 2}, {2, 2}}, {x});
  x = net.op("pad", models::Pad{{0, 0, 1, 1}, {0, 0, 1, 1}, 0.3}, {x});
  NodeId y = net.conv_bn("a", x, 8, 8);
  x = net.relu("add.relu", net.op("add", models::Add{}, {x, y}));
  x = net.op("pool", models::GlobalAvgPool{false}, {x});
  x = net.relu("fc1.relu", net.batch_norm("fc1.bn", net.linear("fc1", x, 8, 6), 6));
  return net.finish(net.linear("fc2", x, 6, 4));
}

void expect_same_function(Student& student) {
  const auto fused = fuse_activations(student.graph);
  const auto run = [&](const models::Graph& graph) {
    return models::execute(graph, student.parameters, test::normal({4, 3, 12, 12}, 3));
  };
  EXPECT_TRUE(at::equal(run(student.graph), run(fused))) << "before calibration";
  student.options.activations.calibration_images = 8;
  calibrate(student, [] { return test::normal({8, 3, 12, 12}, 4); });
  EXPECT_TRUE(at::equal(run(student.graph), run(fused))) << "calibrated";
}

TEST(FuseActivations, SameBits) {
  for (const auto mode : {Mode::paper, Mode::deploy}) {
    QuantOptions options;
    options.mode = mode;
    for (const auto& model : {test::residual_network(), many_forms()}) {
      auto student = test::quantized(model, options);
      expect_same_function(student);
    }
  }
}

TEST(FuseActivations, WhatIsFused) {
  QuantOptions options;
  const auto deploy = fuse_activations(test::quantized(test::residual_network(), options).graph);
  // stem, a, b, c; left: input, stem's second one, after the sum, pool. The one after flatten
  // goes.
  EXPECT_EQ(count(deploy, "bn_clip_fake_quant"), 4);
  EXPECT_EQ(count(deploy, "activation_quantizer"), 4);
  EXPECT_EQ(count(deploy, "BatchNorm"), 0);
  options.mode = Mode::paper;
  const auto paper = fuse_activations(test::quantized(test::residual_network(), options).graph);
  EXPECT_EQ(count(paper, "bn_clip_fake_quant"), 4);
  EXPECT_EQ(count(paper, "activation_quantizer"), 0);
  EXPECT_EQ(count(paper, "BatchNorm"), 0);
  EXPECT_EQ(count(paper, "Add"), 0);
  EXPECT_GE(paper.id_of("a.relu.quantizer"), 0);  // the fused node has the quantizer's name
}

TEST(FuseActivations, SameGradients) {
  for (const auto mode : {Mode::paper, Mode::deploy}) {
    QuantOptions options;
    options.mode = mode;
    options.activations.calibration_images = 8;
    auto student = test::quantized(test::residual_network(), options);
    calibrate(student, [] { return test::normal({8, 3, 12, 12}, 4); });
    const auto gradients = [&](const models::Graph& graph) {
      auto parameters = student.parameters.clone();
      std::vector<at::Tensor> leaves;
      for (const char* name : {"stem.weight", "a.weight", "a.bn.gamma", "a.bn.beta", "fc.bias"})
        leaves.push_back(parameters.at(name).requires_grad_(true));
      models::execute(graph, parameters, test::normal({4, 3, 12, 12}, 3)).square().sum().backward();
      for (auto& leaf : leaves) leaf = leaf.grad();
      return leaves;
    };
    const auto expected = gradients(student.graph),
               found = gradients(fuse_activations(student.graph));
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_TRUE(
          found[i].allclose(expected[i], 1e-3, 1e-4 * expected[i].abs().max().item<float>()))
          << i;
  }
}

}  // namespace
}  // namespace zsq::quant
