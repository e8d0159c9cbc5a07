// SPDX-License-Identifier: Apache-2.0
#include "pipeline/report/student_layers.h"

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

namespace zsq::pipeline {
namespace {

using models::NodeId;

exporters::ExecutesAs row(const std::string& layer, const std::string& executes_as) {
  return {layer, "Conv2d", executes_as, "", ""};
}

// On a map of 4 x 5 places: a 3 -> 8, 480 multiply-accumulates; b 8 -> 2, 320; of those, as tokens
// [2, 20], the product with another such matrix, transposed: [2, 2], 80.
struct Net {
  quant::Student student;

  explicit Net(bool product) {
    auto& graph = student.graph;
    graph.input_shape = {3, 4, 5};
    graph.input = graph.add({"image", models::Input{}, {}});
    const NodeId a = convolution("a", graph.input, 8, 3);
    NodeId last = convolution("b", a, 2, 8);
    if (product) {
      const NodeId tokens = graph.add({"tokens", models::Reshape{{2, 20}}, {last}});
      const NodeId turned = graph.add({"turned", models::Transpose{{0, 2, 1}}, {tokens}});
      last = graph.add({"product", models::MatMul{}, {tokens, turned}});
    }
    graph.output = last;
  }
  NodeId convolution(const std::string& name, NodeId x, std::int64_t outputs, std::int64_t inputs) {
    student.parameters.set(name + ".weight", at::ones({outputs, inputs, 1, 1}));
    return student.graph.add({name, models::Conv2d{}, {x}, {{"weight", name + ".weight"}}});
  }
};

TEST(FloatShare, CountsLayersByWhatTheyExecuteAs) {
  const Net net(false);
  EXPECT_DOUBLE_EQ(float_share(net.student, {row("a", "int8"), row("b", "int8, slow")}), 0);
  EXPECT_DOUBLE_EQ(float_share(net.student, {row("a", "int8"), row("b", "float")}), 320.0 / 800);
  EXPECT_DOUBLE_EQ(float_share(net.student, {row("b", "int8")}), 480.0 / 800);
}

TEST(FloatShare, CountsProductsOfTwoTensorsAsFloat) {
  const Net net(true);
  EXPECT_DOUBLE_EQ(float_share(net.student, {row("a", "int8"), row("b", "int8")}), 80.0 / 880);
}

TEST(FloatShare, IsNoneOfANetworkThatMultipliesNothing) {
  Net net(false);
  net.student.graph.nodes.resize(1);
  net.student.graph.output = net.student.graph.input;
  EXPECT_EQ(float_share(net.student, {}), 0);
}

}  // namespace
}  // namespace zsq::pipeline
