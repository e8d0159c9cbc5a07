// SPDX-License-Identifier: Apache-2.0
// Blocks of networks whose structure is known by hand, and that blocks one after the other are the
// network.
#include "models/blocks.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "models/load.h"

namespace zsq::models::blocks_test {
namespace {

using Names = std::vector<std::string>;

Names exits(const Model& model) {
  Names names;
  for (const auto& block : find_blocks(model.graph, model.parameters))
    names.push_back(model.graph[block.exit].name);
  return names;
}

Names features(const Model& model) {
  Names names;
  for (const NodeId id : feature_nodes(model.graph, model.parameters))
    names.push_back(model.graph[id].name);
  return names;
}

int residuals(const Model& model) {
  int count = 0;
  for (const auto& block : find_blocks(model.graph, model.parameters)) count += block.residual;
  return count;
}

at::Tensor image(const Graph& graph, std::int64_t n) {
  const auto& [c, h, w] = graph.input_shape;
  return at::linspace(0, static_cast<double>(n * c * h * w), n * c * h * w)
      .sin()
      .reshape({n, c, h, w});
}

// Blocks run one by one on what the one before gave.
void expect_chain(const Model& model) {
  const at::NoGradGuard no_grad;
  const auto shapes = infer_shapes(model.graph, model.parameters);
  const auto x = image(model.graph, 2);
  at::Tensor value = x;
  NodeId last = model.graph.input;
  for (const auto& block : find_blocks(model.graph, model.parameters)) {
    ASSERT_EQ(block.entry, last);
    const auto part = cut_out(model.graph, block.entry, block.exit, shapes[block.entry]);
    value = execute(part, model.parameters, as_images(value));
    last = block.exit;
  }
  EXPECT_EQ(last, model.graph.output);
  EXPECT_TRUE(value.equal(execute(model.graph, model.parameters, x)));
}

TEST(Blocks, Resnet20HasAStemNineResidualBlocksAndAClassifier) {
  const auto model = build("resnet20_cifar10", {});
  const auto names = exits(model);
  ASSERT_EQ(names.size(), 11U);
  EXPECT_EQ(names.front(), "bn1.relu");
  EXPECT_EQ(names[1], "layer1.0.add.relu");
  EXPECT_EQ(names[9], "layer3.2.add.relu");
  EXPECT_EQ(names.back(), model.graph[model.graph.output].name);
  EXPECT_EQ(residuals(model), 9);
  EXPECT_EQ(features(model), Names(names.begin() + 1, names.begin() + 10));
  expect_chain(model);
}

TEST(Blocks, InvertedResidualsAreOneBlockWithAndWithoutShortcut) {
  const auto model = build("efficientnet_lite0", {});
  const auto names = exits(model);
  ASSERT_EQ(names.size(), 19U);  // stem, 16 inverted residuals, head, classifier
  EXPECT_EQ(names[0], "_bn0.relu6");
  EXPECT_EQ(names[1], "_blocks.0._bn2");  // depthwise and pointwise only
  EXPECT_EQ(names[2], "_blocks.1._bn2");
  EXPECT_EQ(names[3], "_blocks.2.add");
  EXPECT_EQ(names[16], "_blocks.15._bn2");
  EXPECT_EQ(names[17], "_bn1.relu6");
  EXPECT_EQ(residuals(model), 9);
  // The nine sums, and where the resolution ends without one.
  const auto taps = features(model);
  EXPECT_EQ(taps.size(), 11U);
  EXPECT_EQ(taps.front(), "_blocks.0._bn2");
  EXPECT_EQ(taps.back(), "_bn1.relu6");
}

TEST(Blocks, CountsOfOtherNetworks) {
  EXPECT_EQ(exits(build("resnet18", {})).size(), 10U);      // stem, 8, classifier
  EXPECT_EQ(exits(build("resnet50", {})).size(), 18U);      // stem, 16, classifier
  EXPECT_EQ(exits(build("mobilenet_v2", {})).size(), 20U);  // stem, 17, head, classifier
}

// Written out node by node.
class Branches {
 public:
  Branches() {
    model.graph.input_shape = {4, 8, 8};
    model.graph.input = add("input", Input{}, {});
  }
  NodeId add(const std::string& name, Op op, std::vector<NodeId> inputs,
             std::map<std::string, std::string> params = {}) {
    return model.graph.add({name, std::move(op), std::move(inputs), std::move(params)});
  }
  NodeId conv(const std::string& name, NodeId x, std::int64_t in, std::int64_t out,
              std::int64_t kernel = 1, std::int64_t groups = 1) {
    const auto n = out * in / groups * kernel * kernel;
    model.parameters.set(name, at::linspace(-1, 1, n).view({out, in / groups, kernel, kernel}));
    const auto pad = kernel / 2;
    return add(name, Conv2d{.pads = {pad, pad, pad, pad}, .groups = groups}, {x},
               {{"weight", name}});
  }
  NodeId linear(const std::string& name, NodeId x, std::int64_t in, std::int64_t out) {
    model.parameters.set(name, at::linspace(-1, 1, in * out).view({out, in}));
    return add(name, Linear{}, {x}, {{"weight", name}});
  }
  Model model;
};

TEST(Blocks, WaysThatMeetInAConcatAreOneBlock) {
  Branches net;
  auto x = net.add("relu0", Clip{}, {net.conv("stem", net.model.graph.input, 4, 4)});
  const auto left = net.conv("left", x, 4, 4), right = net.conv("right", x, 4, 2);
  net.conv("dead", left, 4, 4);  // read by nothing
  x = net.add("join", Concat{}, {left, right});
  x = net.add("relu1", Clip{}, {x});
  x = net.add("pool", MaxPool{{2, 2}, {2, 2}}, {x});
  x = net.conv("tail", x, 6, 3);
  x = net.add("flatten", Flatten{}, {x});
  x = net.linear("fc1", x, 48, 5);
  x = net.add("relu2", Clip{}, {x});
  x = net.linear("fc2", x, 5, 2);
  net.model.graph.output = net.add("softmax", Softmax{}, {x});
  EXPECT_EQ(exits(net.model), (Names{"relu0", "relu1", "tail", "relu2", "softmax"}));
  EXPECT_EQ(features(net.model), (Names{"relu1", "tail"}));
  EXPECT_EQ(residuals(net.model), 0);
  expect_chain(net.model);
}

TEST(Blocks, AGateBelongsToItsDepthwiseConvolution) {
  Branches net;
  auto x = net.conv("stem", net.model.graph.input, 4, 4, 3);
  x = net.conv("expand", x, 4, 8);
  x = net.add("swish", Mul{}, {x, net.add("sigmoid", Sigmoid{}, {x})});
  x = net.conv("depthwise", x, 8, 8, 3, 8);
  auto gate = net.add("squeeze", GlobalAvgPool{}, {x});
  gate = net.add("excite", HardSigmoid{}, {net.conv("gate", gate, 8, 8)});
  x = net.add("gated", Mul{}, {x, gate});
  x = net.conv("project", x, 8, 4);
  x = net.conv("head", x, 4, 4);
  net.model.graph.output = x;
  EXPECT_EQ(exits(net.model), (Names{"stem", "project", "head"}));
  expect_chain(net.model);
}

// A function and a constant belong to the layer before them; a reduction does not act on each
// value.
TEST(Blocks, FunctionsBelongToTheLayerBefore) {
  Model model;
  Graph& graph = model.graph;
  graph.input_shape = {3, 4, 4};
  const auto ones = [&](const std::string& name, std::vector<std::int64_t> shape) {
    model.parameters.set(name, at::ones(shape));
    return name;
  };
  NodeId x = graph.input = graph.add({"input", Input{}, {}});
  x = graph.add({"conv", Conv2d{}, {x}, {{"weight", ones("conv.weight", {4, 3, 1, 1})}}});
  x = graph.add({"prelu", PRelu{}, {x}, {{"slope", ones("slope", {4, 1, 1})}}});
  const NodeId one = graph.add({"one", Parameter{}, {}, {{"value", ones("one", {4, 1, 1})}}});
  x = graph.add({"sub", Binary{BinaryKind::sub}, {x, one}});
  x = graph.add({"mish", Elementwise{Function::mish}, {x}});
  x = graph.add({"reduced", Reduce{ReduceKind::mean, {1}}, {x}});
  graph.output =
      graph.add({"last", Conv2d{}, {x}, {{"weight", ones("last.weight", {2, 1, 1, 1})}}});
  EXPECT_EQ(exits(model), (Names{"mish", "last"}));
  expect_chain(model);
}

TEST(CutOut, RefusesASecondWayIn) {
  Branches net;
  const auto a = net.conv("a", net.model.graph.input, 4, 4), b = net.conv("b", a, 4, 4);
  net.model.graph.output = net.add("sum", Add{}, {a, b});
  EXPECT_THROW(cut_out(net.model.graph, b, net.model.graph.output, {1, 4, 8, 8}), Error);
}

}  // namespace
}  // namespace zsq::models::blocks_test
