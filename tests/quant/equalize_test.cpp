// SPDX-License-Identifier: Apache-2.0
#include "quant/equalize.h"

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <cmath>

#include "models/execute.h"
#include "quant/ranges.h"
#include "tests/quant/net.h"

namespace zsq::quant {
namespace {

using models::NodeId;

// Chains of every kind.
models::Model network() {
  test::Net net({3, 12, 12}, 4);
  NodeId x = net.conv_bn_relu("full", net.input(), 3, 8);
  x = net.op("pad", models::Pad{{0, 0, 0, 0}, {0, 0, 1, 1}}, {x});
  x = net.op("pool", models::MaxPool{{2, 2}, {2, 2}}, {x});
  x = net.conv_bn_relu("depthwise", x, 8, 8, 3, 8);
  x = net.op("leaky", models::LeakyRelu{0.1}, {net.conv_bn("expand", x, 8, 8)});
  x = net.op("relu6", models::Clip{0, 6}, {net.conv_bn("project", x, 8, 8, 1)});
  NodeId y = net.conv_bn_relu("branch", x, 8, 8);
  y = net.relu("relu", net.op("add", models::Add{}, {x, net.conv_bn("last", y, 8, 8)}));
  return net.finish(net.conv("head", y, 8, 4));
}

// The same function, written with channels of very different reach.
models::Model unbalanced() {
  auto model = network();
  for (const auto& [norm, reader] : {std::pair{"full", "depthwise"},
                                     {"depthwise", "expand"},
                                     {"expand", "project"},
                                     {"branch", "last"}}) {
    auto weight = model.parameters.at(std::string(reader) + ".weight");
    for (int c = 0; c < 8; ++c) {
      const double factor = std::pow(4, c % 4);
      model.parameters.at(std::string(norm) + ".bn.gamma")[c].mul_(factor);
      model.parameters.at(std::string(norm) + ".bn.beta")[c].mul_(factor);
      weight.select(weight.size(1) == 1 ? 0 : 1, c).div_(factor);
    }
  }
  return model;
}

double unevenness(const models::Model& model, const std::string& norm) {
  const auto reach =
      model.parameters.at(norm + ".beta").add(model.parameters.at(norm + ".gamma").abs(), 4);
  return reach.max().div(reach.min()).item<double>();
}

TEST(Equalize, TheFunctionIsTheSameToTheLastBit) {
  const auto model = unbalanced();
  const auto equal = equalize(model);
  const auto x = test::normal({4, 3, 12, 12}, 8);
  EXPECT_TRUE(at::equal(models::execute(model.graph, model.parameters, x),
                        models::execute(equal.graph, equal.parameters, x)));
  // The full and the depthwise reader, LeakyRelu; not through a ReLU6 or to two readers.
  for (const char* norm : {"full.bn", "depthwise.bn", "expand.bn", "branch.bn"})
    EXPECT_LT(unevenness(equal, norm), 0.5 * unevenness(model, norm)) << norm;
  for (const char* norm : {"project.bn", "last.bn"})
    EXPECT_EQ(unevenness(equal, norm), unevenness(model, norm)) << norm;
}

TEST(Equalize, TheStudentsErrorShrinks) {
  const auto model = unbalanced();
  const auto x = test::normal({4, 3, 12, 12}, 8);
  const auto expected = models::execute(model.graph, model.parameters, x);
  const auto error = [&](bool equalized) {
    QuantOptions options;
    options.equalize = equalized;
    options.activations.range = ActivationRange::min_max;
    options.activations.calibration_images = 4;
    auto student = insert_quantizers(model, options);
    calibrate(student, [&] { return x; });
    return models::execute(student.graph, student.parameters, x)
        .sub(expected)
        .square()
        .mean()
        .item<double>();
  };
  EXPECT_LT(error(true), 0.7 * error(false));
}

// A parameter that two nodes share cannot be scaled for one of them.
TEST(Equalize, SharedParametersStay) {
  auto model = network();
  for (auto& node : model.graph.nodes)
    if (node.name == "depthwise.bn") node.params["gamma"] = "full.bn.gamma";
  const auto equal = equalize(model);
  EXPECT_TRUE(
      at::equal(equal.parameters.at("full.bn.gamma"), model.parameters.at("full.bn.gamma")));
}

}  // namespace
}  // namespace zsq::quant
