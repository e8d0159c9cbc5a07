// SPDX-License-Identifier: Apache-2.0
#include "quant/rewrites/equalize.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <cmath>

#include "models/execute.h"
#include "quant/calibration/ranges.h"
#include "tests/support/network_builder.h"
#include "tests/support/quantized.h"

namespace zsq::quant::equalize_test {
namespace {

using models::NodeId;

QuantOptions options_for(Equalization which) {
  QuantOptions options;
  options.equalize = which;
  return options;
}

// Chains of every kind.
models::Model network() {
  test::NetworkBuilder net({3, 12, 12}, test::varied_parameters(4));
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
  const auto equal = equalize(model, options_for(Equalization::all));
  const auto x = test::normal({4, 3, 12, 12}, 8);
  EXPECT_TRUE(at::equal(models::execute(model.graph, model.parameters, x),
                        models::execute(equal.graph, equal.parameters, x)));
  // The full and the depthwise reader, LeakyRelu; not through a ReLU6 or to two readers.
  for (const char* norm : {"full.bn", "depthwise.bn", "expand.bn", "branch.bn"})
    EXPECT_LT(unevenness(equal, norm), 0.5 * unevenness(model, norm)) << norm;
  for (const char* norm : {"project.bn", "last.bn"})
    EXPECT_EQ(unevenness(equal, norm), unevenness(model, norm)) << norm;
}

// A PReLU is positively homogeneous in each channel; an exponential function is not.
TEST(Equalize, GoesThroughPReluAndNotThroughElu) {
  for (const bool prelu : {true, false}) {
    test::NetworkBuilder net({3, 12, 12}, test::varied_parameters(4));
    const NodeId x = net.conv_bn("first", net.input(), 3, 8);
    net.model().parameters.set("slope", test::normal({8, 1, 1}, 2));
    const NodeId f = prelu ? net.op("f", models::PRelu{}, {x}, {{"slope", "slope"}})
                           : net.op("f", models::Elementwise{models::Function::elu}, {x});
    const auto model = net.finish(net.conv("second", f, 8, 4));
    const auto equal = equalize(model, options_for(Equalization::all));
    const auto images = test::normal({2, 3, 12, 12}, 8);
    EXPECT_TRUE(at::equal(models::execute(model.graph, model.parameters, images),
                          models::execute(equal.graph, equal.parameters, images)));
    EXPECT_NE(
        at::equal(model.parameters.at("first.bn.gamma"), equal.parameters.at("first.bn.gamma")),
        prelu);
  }
}

TEST(Equalize, TheStudentsErrorShrinks) {
  const auto model = unbalanced();
  const auto x = test::normal({4, 3, 12, 12}, 8);
  const auto expected = models::execute(model.graph, model.parameters, x);
  const auto error = [&](bool equalized) {
    QuantOptions options;
    if (equalized) options.equalize = Equalization::all;
    options.activations.range = ActivationRange::min_max;
    options.activations.calibration_images = 4;
    auto student = test::quantized(model, options);
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
  const auto equal = equalize(model, options_for(Equalization::all));
  EXPECT_TRUE(
      at::equal(equal.parameters.at("full.bn.gamma"), model.parameters.at("full.bn.gamma")));
}

// An inverted residual, twice: a linear tensor, its sum with another, and their readers.
models::Model inverted_residuals() {
  test::NetworkBuilder net({3, 12, 12}, test::varied_parameters(5));
  NodeId x = net.conv_bn("stem", net.input(), 3, 8);
  NodeId y = net.relu6("a", net.conv_bn("expand1", x, 8, 8, 1));
  y = net.relu6("b", net.conv_bn("depthwise1", y, 8, 8, 3, 8));
  x = net.op("add", models::Add{}, {x, net.conv_bn("project1", y, 8, 8, 1)});
  y = net.relu6("c", net.conv_bn("expand2", x, 8, 8, 1));
  return net.finish(net.conv("head", y, 8, 4));
}

TEST(Equalize, InvertedResidualsKeepTheirFunction) {
  auto model = inverted_residuals();
  // Far below the bound, so that 8 deviations of the scaled channels reach just to it.
  for (const char* norm : {"expand1.bn", "depthwise1.bn"})
    for (const char* role : {".gamma", ".beta"})
      model.parameters.at(std::string(norm) + role).mul_(0.2);
  const auto equal = equalize(model, options_for(Equalization::inverted_residuals));
  const auto x = test::normal({4, 3, 12, 12}, 8).mul(0.2);
  const auto before = models::execute(model.graph, model.parameters, x);
  const auto behind = models::execute(equal.graph, equal.parameters, x);
  EXPECT_LT(before.sub(behind).abs().max().item<double>(), 1e-4);
  const auto& gamma = equal.parameters.at("expand1.bn.gamma");
  const auto reach = equal.parameters.at("expand1.bn.beta").add(gamma.abs(), 8);
  EXPECT_LT(reach.sub(6).abs().max().item<double>(), 1e-4);  // before a depthwise convolution
  EXPECT_TRUE(at::equal(equal.parameters.at("depthwise1.bn.gamma"),  // a dense one reads ReLU6
                        model.parameters.at("depthwise1.bn.gamma")));
}

// A channel whose values reach the bound as it is stays: a smaller factor would lose range, a
// larger one function.
TEST(Equalize, ChannelsAtTheBoundOfARelu6Stay) {
  auto model = inverted_residuals();
  for (const char* role : {".gamma", ".beta"}) {
    auto& values = model.parameters.at(std::string("expand1.bn") + role);
    values.mul_(0.2);
    values.narrow(0, 0, 3).fill_(1);  // reach 1 + 8 * 1
  }
  const auto equal = equalize(model, options_for(Equalization::inverted_residuals));
  const auto gamma = equal.parameters.at("expand1.bn.gamma");
  const auto factor = gamma.div(model.parameters.at("expand1.bn.gamma"));
  EXPECT_TRUE(factor.narrow(0, 0, 3).eq(1).all().item<bool>()) << factor;
  EXPECT_TRUE(factor.narrow(0, 3, 5).gt(1).all().item<bool>()) << factor;
}

// Also of values beyond the ranges: the bounds are scaled with the channels.
TEST(Equalize, RangesPerChannelKeepTheFunction) {
  const auto model = inverted_residuals();
  const auto equal = equalize(model, options_for(Equalization::depthwise));
  const auto x = test::normal({4, 3, 12, 12}, 8).mul(4);
  const auto before = models::execute(model.graph, model.parameters, x);
  const auto behind = models::execute(equal.graph, equal.parameters, x);
  EXPECT_LT(before.sub(behind).abs().max().item<double>(),
            1e-5 * before.abs().max().item<double>());
  EXPECT_TRUE(at::equal(equal.parameters.at("depthwise1.bn.gamma"),  // a dense one reads ReLU6
                        model.parameters.at("depthwise1.bn.gamma")));
}

// The range that a channel would have by itself becomes the bound of the ReLU6.
TEST(Equalize, ChannelsBeforeADepthwiseConvolutionReachTheBound) {
  auto model = inverted_residuals();
  const auto set = [&](const char* role, std::int64_t channel, double value) {
    model.parameters.at(std::string("expand1.bn") + role)[channel] = value;
  };
  set(".beta", 0, 6);  // fills the range: stays
  set(".gamma", 0, 3);
  set(".beta", 1, 0);
  set(".gamma", 1, 0.5);
  set(".beta", 2, 0);
  set(".gamma", 2, -0.25);
  const auto equal = equalize(model, options_for(Equalization::depthwise));
  const auto factor =
      equal.parameters.at("expand1.bn.gamma").div(model.parameters.at("expand1.bn.gamma"));
  EXPECT_NEAR(factor[0].item<double>(), 1, 0.02);
  EXPECT_NEAR(factor[2].item<double>(), 2 * factor[1].item<double>(), 1e-4);
  // At 4 bits a half-normal value has the least seventh power of its error at 4.7 deviations.
  EXPECT_NEAR(factor[1].item<double>(), 6 / (4.7 * 0.5), 0.05);
  EXPECT_TRUE(at::allclose(equal.parameters.at("a.upper").flatten(), factor * 6));
  EXPECT_TRUE(
      at::equal(equal.parameters.at("stem.bn.gamma"), model.parameters.at("stem.bn.gamma")));
}

// The student's quantizer ends below the one bound that is left of the bounds per channel.
TEST(Equalize, TheStudentReadsEachChannelInItsOwnRange) {
  const auto model = inverted_residuals();
  QuantOptions options = options_for(Equalization::depthwise);
  options.weights.num_bits = 8;
  options.activations.range = ActivationRange::bn_statistics;
  const auto equal = equalize(model, options);
  Student student = test::quantized(model, options);
  calibrate(student, [] { return at::Tensor(); });
  const auto scale = student.parameters.at("a.quantizer.scale").item<double>();
  EXPECT_GT(15 * scale, 4.5);  // the rule for whole tensors has a lower power of the error
  EXPECT_LT(15 * scale, 6.3);
  const auto& clip = student.graph[student.graph.id_of("a")];
  EXPECT_GE(models::get_if<models::Clip>(clip)->hi, 15 * scale);
  EXPECT_FALSE(clip.params.contains("upper"));
}

// Worked by hand: w^(1/4) r^(-3/4), once of the stem's output and once of its sum with project1,
// relative to the geometric mean over the channels.
TEST(Equalize, TensorsThatAdditionsJoinHaveOneFactor) {
  const auto model = inverted_residuals();
  const auto equal = equalize(model, options_for(Equalization::inverted_residuals));
  const auto value = [&](const models::Model& m, const std::string& name) {
    return m.parameters.at(name).to(at::kDouble);
  };
  const auto relative = [](const at::Tensor& x) { return x.div(x.log().mean().exp()); };
  at::Tensor mean = value(model, "stem.bn.beta"), variance = value(model, "stem.bn.gamma").square();
  at::Tensor product = at::ones({8}, at::kDouble);
  for (const char* reader : {"expand1", "expand2"}) {
    const auto reach = mean.abs().add(variance.sqrt(), 4);
    const auto largest = value(model, std::string(reader) + ".weight").abs().amax({0, 2, 3});
    product = product * relative(largest).pow(0.25) * relative(reach).pow(-0.75);
    mean = mean + value(model, "project1.bn.beta");
    variance = variance + value(model, "project1.bn.gamma").square();
  }
  const auto expected = product.sqrt();
  for (const char* norm : {"stem.bn", "project1.bn"}) {
    const auto factor =
        value(equal, std::string(norm) + ".gamma").div(value(model, std::string(norm) + ".gamma"));
    EXPECT_TRUE(at::allclose(factor, expected, 1e-5)) << norm << factor << expected;
  }
}

TEST(Equalize, EightBitsGainNothing) {
  const auto model = inverted_residuals();
  auto options = options_for(Equalization::inverted_residuals);
  for (const auto& [weights, activations] : {std::pair{8, 8}, {4, 8}, {8, 4}}) {
    options.weights.num_bits = weights;
    options.activations.num_bits = activations;
    const auto gamma = equalize(model, options).parameters.at("stem.bn.gamma");
    EXPECT_EQ(at::equal(gamma, model.parameters.at("stem.bn.gamma")), weights + activations == 16);
  }
}

// One of its readers shares its weight, which therefore cannot give way.
TEST(Equalize, ALinearTensorStaysWithAReaderThatCannotChange) {
  auto model = inverted_residuals();
  auto& graph = model.graph;
  graph[graph.id_of("expand2")].params["weight"] = "expand1.weight";  // shared
  const auto equal = equalize(model, options_for(Equalization::inverted_residuals));
  EXPECT_TRUE(
      at::equal(equal.parameters.at("stem.bn.gamma"), model.parameters.at("stem.bn.gamma")));
}

}  // namespace
}  // namespace zsq::quant::equalize_test
