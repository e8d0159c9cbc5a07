// SPDX-License-Identifier: Apache-2.0
// HardSwish and SiLU between channels of very different widths: the same network with factors, and
// a closer one on grids of 8 bits.
#include "quant/rewrites/scale_gates.h"

#include <ATen/ops/linspace.h>
#include <gtest/gtest.h>

#include "models/execute.h"
#include "quant/calibration/ranges.h"
#include "quant/student.h"
#include "tests/support/network_builder.h"
#include "tests/support/quantized.h"

namespace zsq::quant::scale_gates_test {
namespace {

using models::NodeId;
using test::NetworkBuilder;

constexpr std::int64_t kChannels = 16;

// Widths from 1/8 to 64, mostly below 0, where HardSwish needs no codes from -3 on.
enum class Function { hard_swish, silu };

NodeId swish_of(NetworkBuilder& net, const std::string& name, NodeId x,
                Function function = Function::hard_swish) {
  const auto widths = at::linspace(-3, 6, kChannels).exp2();
  net.at(name + ".gamma").copy_(widths.div(4));
  net.at(name + ".beta").copy_(widths.mul(-0.75));
  net.at(name + ".mean").zero_();
  net.at(name + ".variance").fill_(1);
  if (function == Function::hard_swish) return net.op(name + ".swish", models::HardSwish{}, {x});
  return net.op(name + ".silu", models::Mul{},
                {x, net.op(name + ".sigmoid", models::Sigmoid{}, {x})});
}

NodeId unit(NetworkBuilder& net, const std::string& name, NodeId x, std::int64_t in,
            std::int64_t groups = 1) {
  return swish_of(net, name + ".bn",
                  net.conv_bn(name, x, in, kChannels, groups > 1 ? 3 : 1, groups));
}

// Read by a depthwise convolution; by a gate of its pool and a product with it; by a join with
// another tensor; by a classifier.
models::Model readers_of_all_kinds() {
  NetworkBuilder net;
  const NodeId first = unit(net, "first", net.input(), 3);
  const NodeId second = unit(net, "second", first, kChannels, kChannels);
  NodeId gate = net.op("squeeze", models::GlobalAvgPool{}, {second});
  gate = net.op("gate", models::Sigmoid{}, {net.conv("excite", gate, kChannels, kChannels, 1)});
  const NodeId gated = net.op("gated", models::Mul{}, {second, gate});
  const NodeId relu = net.conv_bn_relu("side", first, kChannels, 8, 1);
  const NodeId joined = net.op("joined", models::Concat{1}, {relu, gated});
  NodeId x = unit(net, "last", joined, 8 + kChannels);
  x = net.op("flatten", models::Flatten{}, {net.op("pool", models::GlobalAvgPool{}, {x})});
  return net.finish(net.linear("fc", x, kChannels, 10));
}

at::Tensor run(const models::Model& model) {
  return models::execute(model.graph, model.parameters, test::normal({4, 3, 12, 12}, 7));
}

std::int64_t scaled_gates(const models::Model& model) {
  return std::ranges::count_if(model.graph.nodes, [](const models::Node& node) {
    return models::is<models::HardSwish>(node) && node.params.contains("scale");
  });
}

TEST(ScaleGates, LeaveTheNetworkAsItIs) {
  const auto model = readers_of_all_kinds();
  const auto expected = run(model);
  const auto scaled = scale_gates(model);
  EXPECT_EQ(scaled_gates(scaled), 3);
  EXPECT_LT((run(scaled) - expected).abs().max().item<float>(),
            1e-4 * expected.abs().max().item<float>());
}

TEST(ScaleGates, AreLeftAloneWhereAReaderWouldSeeTheFactor) {
  const auto gates = [](const std::function<NodeId(NetworkBuilder&, NodeId)>& reader) {
    NetworkBuilder net;
    const NodeId x = unit(net, "first", net.input(), 3);
    NodeId y = reader(net, x);
    y = net.conv_bn_relu("head", y, kChannels, 8, 1);
    return scaled_gates(scale_gates(net.finish(y)));
  };
  EXPECT_EQ(gates([](NetworkBuilder&, NodeId x) { return x; }), 1);
  EXPECT_EQ(gates([](NetworkBuilder& net, NodeId x) {
              return net.op("sum", models::Add{}, {x, net.conv("c", x, kChannels, kChannels, 1)});
            }),
            0);
  EXPECT_EQ(
      gates([](NetworkBuilder& net, NodeId x) {
        return net.op("square", models::Mul{}, {x, net.op("p", models::MaxPool{{1, 1}}, {x})});
      }),
      0);
  EXPECT_EQ(gates([](NetworkBuilder& net, NodeId x) {
              return net.op("sigmoid", models::Sigmoid{}, {x});
            }),
            0);
  EXPECT_EQ(gates([](NetworkBuilder& net, NodeId x) {
              return net.conv("grouped", x, kChannels, kChannels, 3, 4);
            }),
            0);
}

std::int64_t scaled_sigmoids(const models::Model& model) {
  const auto& nodes = model.graph.nodes;
  return std::ranges::count_if(nodes, [&](const models::Node& node) {
    return models::is<models::Sigmoid>(node) &&
           models::is<models::Mul>(model.graph[node.inputs[0]]);
  });
}

// y is read by a convolution, and added to what that one makes of it and to what follows.
models::Model silu_with_shortcuts(bool added_has_norm) {
  NetworkBuilder net;
  NodeId x = net.conv_bn("stem", net.input(), 3, kChannels, 3);
  x = swish_of(net, "stem.bn", x, Function::silu);
  for (const char* name : {"one", "two"}) {
    const NodeId inner = net.conv_bn_relu(std::string(name) + ".in", x, kChannels, 8, 1);
    const std::string out = std::string(name) + ".out";
    x = net.op(std::string(name) + ".sum", models::Add{},
               {x, added_has_norm ? net.conv_bn(out, inner, 8, kChannels, 1)
                                  : net.conv(out, inner, 8, kChannels, 1)});
  }
  const auto model = net.finish(net.conv_bn_relu("head", x, kChannels, 8, 1));
  if (added_has_norm)  // as wide as what they are added to
    for (const char* name : {"one.out.bn.gamma", "two.out.bn.gamma"})
      model.parameters.at(name).copy_(model.parameters.at("stem.bn.gamma"));
  return model;
}

TEST(ScaleGates, OfSiluAndWhatIsAddedToItLeaveTheNetworkAsItIs) {
  const auto model = silu_with_shortcuts(true);
  const auto expected = run(model);
  const auto scaled = scale_gates(model);
  EXPECT_EQ(scaled_sigmoids(scaled), 1);
  EXPECT_LT((run(scaled) - expected).abs().max().item<float>(),
            1e-4 * expected.abs().max().item<float>());
  const auto& gamma = scaled.parameters.at("two.out.bn.gamma");
  EXPECT_FALSE(gamma.equal(model.parameters.at("two.out.bn.gamma")));
  EXPECT_EQ(scaled_sigmoids(scale_gates(silu_with_shortcuts(false))), 0);
  auto of_images = silu_with_shortcuts(true);
  of_images.statistics_of_images = true;
  EXPECT_EQ(scaled_sigmoids(scale_gates(of_images)), 0);
}

TEST(ScaleGates, NeedChannelsOfDifferentWidths) {
  NetworkBuilder net;
  const NodeId x = unit(net, "first", net.input(), 3);
  net.at("first.bn.gamma").fill_(1);
  net.at("first.bn.beta").fill_(0);
  const auto model = net.finish(net.conv_bn_relu("head", x, kChannels, 8, 1));
  EXPECT_EQ(scaled_gates(scale_gates(model)), 0);
}

// 8 bits of one grid for channels whose widths differ 500 times leave the narrow ones without any:
// without factors the mean error of a channel is half of its square. With factors x and y share
// what the 3 below 0 cost narrow channels; codes for what lies lower would make the error 0.005.
double error_of_eight_bits(Function function) {
  NetworkBuilder net({kChannels, 12, 12});
  const NodeId x = swish_of(net, "norm", net.batch_norm("norm", net.input(), kChannels), function);
  const auto model = net.finish(net.conv("dw", x, kChannels, kChannels, 3, kChannels));
  const auto images = test::normal({16, kChannels, 12, 12}, 7);
  const auto expected = models::execute(model.graph, model.parameters, images);
  QuantOptions options;
  options.weights.num_bits = options.activations.num_bits = 8;
  options.activations.range = ActivationRange::bn_statistics;
  auto student = test::quantized(model, options);
  calibrate(student, images, 16);
  const auto y = models::execute(student.graph, student.parameters, images);
  const auto of_channels =
      (y - expected).square().sum({0, 2, 3}) / expected.square().sum({0, 2, 3});
  return of_channels.mean().item<double>();
}

TEST(ScaleGates, BringAStudentOfEightBitsCloser) {
  EXPECT_LT(error_of_eight_bits(Function::hard_swish), 0.0042);
  EXPECT_LT(error_of_eight_bits(Function::silu), 0.02);  // its product with s has a grid, too
}

}  // namespace
}  // namespace zsq::quant::scale_gates_test
