// SPDX-License-Identifier: Apache-2.0
#include "quant/rewrites/rotate_bottlenecks.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "models/execute.h"
#include "quant/calibration/ranges.h"
#include "quant/student.h"
#include "tests/support/network_builder.h"
#include "tests/support/quantized.h"

namespace zsq::quant::rotate_bottlenecks_test {
namespace {

using models::NodeId;

constexpr std::int64_t kChannels = 6;

// Two inverted residuals; "project1" and the sum "add" are linear. The kernel of the layer that
// reads them is 1 in a bottleneck.
models::Model inverted_residuals(std::int64_t kernel = 1) {
  test::NetworkBuilder net({3, 12, 12}, test::varied_parameters(5));
  NodeId x = net.relu6("stem.relu6", net.conv_bn("stem", net.input(), 3, 8));
  x = net.conv_bn("project1", x, 8, kChannels, 1);
  NodeId y = net.relu6("a", net.conv_bn("expand1", x, kChannels, 12, kernel));
  y = net.relu6("b", net.conv_bn("depthwise1", y, 12, 12, 3, 12));
  x = net.op("add", models::Add{}, {x, net.conv_bn("project2", y, 12, kChannels, 1)});
  y = net.relu6("c", net.conv_bn("expand2", x, kChannels, 12, kernel));
  return net.finish(net.conv("head", y, 12, 4));
}

at::Tensor images() { return test::normal({8, 3, 12, 12}, 8); }

NodeId id_of(const models::Model& model, const std::string& name) {
  return model.graph.id_of(name);
}

// [C, values]
at::Tensor channels_of(const models::Model& model, const std::string& name) {
  models::Taps taps{{id_of(model, name)}, {}};
  models::execute(model.graph, model.parameters, images(), &taps);
  return taps.values[0].transpose(0, 1).flatten(1);
}

// As trained on images(): running statistics are those of what the layer reads.
void take_statistics(models::Model& model, const std::string& layer) {
  const auto x = channels_of(model, layer);
  model.parameters.at(layer + ".bn.mean") = x.mean(1);
  model.parameters.at(layer + ".bn.variance") = x.var(1, false);
}

TEST(RotateBottlenecks, TheFunctionStays) {
  const auto model = inverted_residuals();
  ASSERT_TRUE(has_bottlenecks(model));
  const auto rotated = rotate_bottlenecks(model, images(), 3);
  const auto x = test::normal({4, 3, 12, 12}, 9);
  const auto expected = models::execute(model.graph, model.parameters, x);
  EXPECT_TRUE(
      at::allclose(models::execute(rotated.graph, rotated.parameters, x), expected, 1e-4, 1e-4));
  for (const char* name : {"project1.weight", "project2.weight", "expand1.weight"})
    EXPECT_FALSE(at::allclose(rotated.parameters.at(name), model.parameters.at(name), 0.05))
        << name;
}

TEST(RotateBottlenecks, ChannelsHaveTheSameVarianceAndMeanZero) {
  // One reader, so that its tensor alone decides.
  test::NetworkBuilder net({3, 12, 12}, test::varied_parameters(5));
  NodeId x = net.conv_bn("project", net.relu6("relu6", net.conv_bn("stem", net.input(), 3, 8)), 8,
                         kChannels, 1);
  x = net.relu6("a", net.conv_bn("expand", x, kChannels, 12, 1));
  auto model = net.finish(net.conv("head", x, 12, 4));
  model.parameters.at("project.bn.gamma") =
      at::tensor({0.1, 3.0, -0.5, 1.0, 2.0, 0.02}, at::kFloat);
  take_statistics(model, "project");

  const auto before = channels_of(model, "project.bn").var(1, false);
  EXPECT_GT(before.max().item<float>(), 1e3 * before.min().item<float>());
  const auto rotated = rotate_bottlenecks(model, images(), 8);
  const auto after = channels_of(rotated, "project.bn");
  const auto variance = after.var(1, false);
  EXPECT_TRUE(at::allclose(variance, before.mean().expand_as(variance), 1e-3)) << variance;
  EXPECT_LT(after.mean(1).abs().max().item<float>(), 1e-3);
  // What BatchNorm says of the channels is true of them.
  EXPECT_TRUE(at::allclose(rotated.parameters.at("project.bn.gamma").square(), variance, 1e-3));
  EXPECT_EQ(rotated.parameters.at("project.bn.beta").abs().max().item<float>(), 0);
}

TEST(RotateBottlenecks, FourBitsLoseLess) {
  auto model = inverted_residuals();
  model.parameters.at("project1.bn.gamma").mul_(at::tensor({8, 1, 1, 1, 1, 1}, at::kFloat));
  model.parameters.at("expand1.weight").select(1, 0).div_(8);
  model.parameters.at("expand2.weight").select(1, 0).div_(8);
  const auto expected = models::execute(model.graph, model.parameters, images());
  const auto error = [&](const models::Model& teacher) {
    QuantOptions options;
    options.weights.num_bits = 8;
    options.activations.range = ActivationRange::min_max;
    options.activations.calibration_images = 8;
    auto student = test::quantized(teacher, options);
    calibrate(student, [&] { return images(); });
    const auto logits = models::execute(student.graph, student.parameters, images());
    return logits.sub(expected).square().mean().item<double>();
  };
  EXPECT_LT(error(rotate_bottlenecks(model, images(), 8)), 0.7 * error(model));
}

// A reader of 3x3 pads with zeros, which are no zeros once the mean is taken out.
TEST(RotateBottlenecks, OtherNetworksStay) {
  for (const auto& model : {inverted_residuals(3), [] {
                              test::NetworkBuilder net;
                              auto x = net.conv_bn_relu("a", net.input(), 3, 8);
                              return net.finish(net.conv("b", x, 8, 4, 1));
                            }()}) {
    EXPECT_FALSE(has_bottlenecks(model));
    const auto after = rotate_bottlenecks(model, images(), 8);
    for (const auto& name : model.parameters.names())
      EXPECT_TRUE(at::equal(after.parameters.at(name), model.parameters.at(name))) << name;
  }
}

TEST(RotateBottlenecks, SharedParametersStay) {
  auto model = inverted_residuals();
  for (auto& node : model.graph.nodes)
    if (node.name == "expand2") node.params["weight"] = "expand1.weight";
  EXPECT_FALSE(has_bottlenecks(model));
}

}  // namespace
}  // namespace zsq::quant::rotate_bottlenecks_test
