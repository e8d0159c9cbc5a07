// SPDX-License-Identifier: Apache-2.0
// Moments and bias correction against images drawn from the distribution that the BatchNorm layers
// of small networks claim: every pixel of the input is N(0, 1), and BatchNorm has mean 0, variance
// 1, eps 0.
#include "quant/data_free/moments.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "models/execute.h"
#include "quant/calibration/bias_correction.h"
#include "quant/calibration/ranges.h"
#include "quant/data_free/distribution.h"
#include "quant/fold_batch_norm.h"
#include "quant/student.h"
#include "tests/support/network_builder.h"
#include "tests/support/quantized.h"

namespace zsq::quant::moments_test {
namespace {

using models::NodeId;

constexpr std::int64_t kImages = 8000;

// BatchNorm after N(0, 1): its output has mean beta and variance gamma^2.
NodeId standard_norm(test::NetworkBuilder& net, const std::string& name, NodeId x,
                     std::int64_t channels) {
  const NodeId id = net.batch_norm(name, x, channels);
  net.model().parameters.at(name + ".mean").zero_();
  net.model().parameters.at(name + ".variance").fill_(1);
  std::get<models::BatchNorm>(net.model().graph[id].op).eps = 0;
  return id;
}

// Means and variances of nodes over drawn images, at each place.
std::vector<Moments> sampled(const models::Graph& graph, const models::ParameterStore& parameters,
                             const std::vector<NodeId>& nodes) {
  const auto [c, h, w] = graph.input_shape;
  models::Taps taps{nodes, {}};
  models::execute(graph, parameters, test::normal({kImages, c, h, w}, 77), &taps);
  std::vector<Moments> result;
  for (const auto& x : taps.values)
    result.push_back({x.mean(at::IntArrayRef{0}, true), x.var(at::IntArrayRef{0}, true, true)});
  return result;
}

void expect_close(const Moments& told, const Moments& seen, const std::string& name) {
  const auto deviation = seen.variance.sqrt().add(1e-3);
  EXPECT_EQ(told.mean.sizes(), seen.mean.sizes()) << name;
  // About five deviations of the sample's mean and variance.
  EXPECT_LT(told.mean.sub(seen.mean).abs().div(deviation).max().item<float>(), 0.06) << name;
  EXPECT_LT(told.variance.sub(seen.variance).abs().div(deviation.square()).max().item<float>(), 0.2)
      << name;
}

TEST(Moments, AgreeWithDrawnImages) {
  test::NetworkBuilder net({6, 5, 4}, test::varied_parameters(3));
  const NodeId left = net.op("left", models::Slice{1, 0, 3}, {net.input()});
  const NodeId right = net.op("right", models::Slice{1, 3, 6}, {net.input()});
  const NodeId a = standard_norm(net, "a", left, 3), b = standard_norm(net, "b", right, 3);
  net.model().parameters.set("constant", test::normal({3, 1, 1}, 5));
  const NodeId constant = net.op("constant", models::Parameter{}, {}, {{"value", "constant"}});
  const NodeId sum = net.op("sum", models::Add{}, {a, b});
  const std::vector<NodeId> nodes{
      net.op("relu", models::Clip{}, {a}),
      net.op("relu6", models::Clip{0, 1.5}, {sum}),
      net.op("band", models::Clip{-0.5, 0.25}, {b}),
      net.op("below", models::Clip{-std::numeric_limits<float>::infinity(), 0.5}, {b}),
      net.op("leaky", models::LeakyRelu{0.1}, {a}),
      net.op("hardswish", models::HardSwish{}, {sum}),
      net.op("sigmoid", models::Sigmoid{}, {b}),
      sum,
      net.op("product", models::Mul{}, {a, b}),
      net.op("shifted", models::Add{}, {a, constant}),
      net.op("scaled", models::Mul{}, {constant, a}),
      net.op("joined", models::Concat{1}, {b, a}),
      net.op("padded", models::Pad{{0, 0, 1, 0}, {0, 0, 0, 2}, 0.5}, {a}),
      net.conv("conv", net.op("c", models::Clip{}, {a}), 3, 4, 3, 1, true)};
  const auto model = net.finish(nodes.back());
  const auto told = activation_moments(model.graph, model.parameters, nodes);
  const auto seen = sampled(model.graph, model.parameters, nodes);
  for (std::size_t i = 0; i < nodes.size(); ++i)
    expect_close(told[i], seen[i], model.graph[nodes[i]].name);
}

// Far from the ends, beyond them, and without any spread; a dead channel is its beta.
TEST(Moments, OfClippedConstantsAndDeadChannels) {
  test::NetworkBuilder net({4, 2, 2}, test::varied_parameters(1));
  const NodeId bn = net.batch_norm("bn", net.input(), 4);
  const auto model = net.finish(net.op("relu6", models::Clip{0, 6}, {bn}));
  auto parameters = model.parameters;
  const float betas[] = {-2, 2.5, 7, 0};
  for (int c = 0; c < 4; ++c) parameters.at("bn.beta")[c] = betas[c];
  parameters.at("bn.variance").zero_();
  const auto [mean, variance] =
      activation_moments(model.graph, parameters, {model.graph.output})[0];
  EXPECT_LT(variance.max().item<float>(), 1e-11);
  const float expected[] = {0, 2.5, 6, 0};
  for (int c = 0; c < 4; ++c)
    EXPECT_NEAR(mean[0][c][1][1].item<float>(), expected[c], 3e-6);  // 6 units in the last place
}

// A scale per channel after ReLU, with and without a quantizer of its own.
TEST(Moments, OfProductsWithConstants) {
  test::NetworkBuilder net({4, 5, 4}, test::varied_parameters(2));
  const NodeId x = net.relu("relu", standard_norm(net, "bn", net.input(), 4));
  net.model().parameters.set("scale", at::tensor({-1.5, 0.0, 0.5, 2.0}).to(at::kFloat));
  auto& value = net.at("scale");
  value = value.view({4, 1, 1});
  const NodeId scale = net.op("scale", models::Parameter{}, {}, {{"value", "scale"}});
  const NodeId product = net.op("product", models::Mul{}, {scale, x});
  const auto model = net.finish(net.conv("conv", product, 4, 8));
  const auto seen = sampled(model.graph, model.parameters, {product})[0];
  expect_close(activation_moments(model.graph, model.parameters, {product})[0], seen, "float");
  QuantOptions options;
  options.activations.range = ActivationRange::bn_statistics;
  Student student = test::quantized(model, options);
  calibrate(student, [] { return at::Tensor(); });
  const auto id = student.graph.id_of("product");
  ASSERT_TRUE(models::is<models::Custom>(student.graph[student.graph[id].inputs[0]]));
  expect_close(activation_moments(student.graph, student.parameters, {id})[0], seen, "quantized");
  const auto* quantizer = activation_quantizer(student.graph[student.graph[id].inputs[0]]);
  const auto rows = activation_distributions(model.graph, model.parameters, {scale})[0];
  EXPECT_TRUE(distribution::mean(rows).view({4, 1, 1}).allclose(value));
  EXPECT_LT(distribution::variance(rows).max().item<float>(), 1e-11);
  ASSERT_NE(quantizer, nullptr);
}

// stem BatchNorm - ReLU - conv - BatchNorm - ReLU - conv - pool - linear, with true statistics.
models::Model drawn_network(bool bias) {
  test::NetworkBuilder net({4, 6, 6}, test::varied_parameters(9));
  NodeId x = net.relu("relu0", standard_norm(net, "bn0", net.input(), 4));
  const NodeId conv = net.conv("conv", x, 4, 24, 3, 2);
  x = net.relu("relu1", net.batch_norm("bn1", conv, 24));
  x = net.conv("plain", x, 24, 6, 3, 1, bias);
  x = net.op("flatten", models::Flatten{}, {net.op("pool", models::GlobalAvgPool{}, {x})});
  auto model = net.finish(net.linear("fc", x, 6, 5));
  models::Taps taps{{conv}, {}};
  models::execute(model.graph, model.parameters, test::normal({2000, 4, 6, 6}, 55), &taps);
  model.parameters.set("bn1.mean", taps.values[0].mean({0, 2, 3}));
  model.parameters.set("bn1.variance", taps.values[0].var({0, 2, 3}, false));
  return model;
}

// How far the student's channel means are off, relative to the teacher's spread.
double shift_of(const models::Model& teacher, const Student& student, const std::string& node) {
  const auto means = [&](const models::Graph& graph, const models::ParameterStore& parameters) {
    const auto moments = sampled(graph, parameters, {graph.id_of(node)})[0];
    return moments.mean.reshape({moments.mean.size(1), -1}).mean(1);
  };
  const auto spread = sampled(teacher.graph, teacher.parameters, {teacher.graph.id_of(node)})[0];
  return means(student.graph, student.parameters)
      .sub(means(teacher.graph, teacher.parameters))
      .abs()
      .max()
      .div(spread.variance.mean().sqrt())
      .item<double>();
}

TEST(BiasCorrection, TakesTheMeanErrorOutOfEveryLayer) {
  for (const bool bias : {false, true}) {
    const auto teacher = drawn_network(bias);
    QuantOptions options;
    options.weights.num_bits = options.first_last_bits = 2;
    const auto plain = test::quantized(teacher, options);
    options.bias_correction = BiasCorrection::bn_statistics;
    const auto corrected = test::quantized(teacher, options);
    // Exact for the first layer; the second one's input is not quite normal, and the third reads
    // what the errors of both have left.
    for (const auto& [node, rest] : {std::pair{"bn1", 0.02}, {"plain", 0.15}, {"fc", 0.15}}) {
      const double before = shift_of(teacher, plain, node);
      EXPECT_GT(before, 0.1) << node;
      EXPECT_LT(shift_of(teacher, corrected, node), std::max(rest * before, 0.015)) << node;
    }
    EXPECT_TRUE(
        at::equal(plain.parameters.at("conv.weight"), corrected.parameters.at("conv.weight")));
    // The integer form takes the bias along.
    for (const auto& site : weight_sites(corrected))
      EXPECT_FALSE(
          at::equal(integer_weights(plain, site).bias, integer_weights(corrected, site).bias));
  }
}

// Pixels that are not normalised: cut off at 0, N(0, 1) would have another mean than it had.
TEST(BiasCorrection, QuantizedPixelsKeepTheirMean) {
  test::NetworkBuilder net({3, 6, 6}, test::varied_parameters(4));
  const NodeId x = net.conv_bn_relu("conv", net.input(), 3, 8);
  const auto teacher =
      net.finish(net.linear("fc", net.op("pool", models::GlobalAvgPool{false}, {x}), 8, 5));
  for (const auto& [lo, hi] : {std::pair{0.0, 1.0}, {0.0, 255.0}, {-124.0, 151.0}, {-2.1, 2.6}}) {
    QuantOptions options;
    options.image_lo = lo;
    options.image_hi = hi;
    auto student = test::quantized(teacher, options);
    const auto& first = *activation_quantizer(student.graph[student.graph.consumers()[0][0]]);
    const double scale = (hi - lo) / 255;
    student.parameters.set(first.scale_name(), at::full({}, scale));
    student.parameters.set(first.zero_point_name(),
                           at::full({}, std::round(-lo / scale) + double(first.spec().qmin)));
    const auto input = infer_layer_inputs(student, teacher)[0];
    const auto shift = (input.quantized_mean - input.mean).abs().max().item<double>();
    EXPECT_LT(shift, 0.01 * (hi - lo)) << lo << " to " << hi;
    EXPECT_GT(input.variance.min().item<double>(), 0) << lo << " to " << hi;
  }
}

// Exporters of ONNX files store equal tensors once.
TEST(BiasCorrection, LayersThatShareTheirBetaGetTheirOwn) {
  auto teacher = drawn_network(true);
  for (auto& node : teacher.graph.nodes)
    if (node.name == "plain")
      node.params["bias"] = "shared";
    else if (node.name == "bn1")
      node.params["beta"] = "shared24";
  teacher.parameters.set("shared", teacher.parameters.at("plain.bias"));
  teacher.parameters.set("shared24", teacher.parameters.at("bn1.beta"));
  auto twin = teacher;
  for (auto& node : twin.graph.nodes)
    if (node.name == "bn1") node.params["mean"] = "shared24";
  QuantOptions options;
  options.bias_correction = BiasCorrection::bn_statistics;
  const auto own = test::quantized(teacher, options), split = test::quantized(twin, options);
  EXPECT_FALSE(at::equal(own.parameters.at("shared24"), teacher.parameters.at("shared24")));
  EXPECT_TRUE(at::equal(split.parameters.at("shared24"), teacher.parameters.at("shared24")));
}

// y = x sigmoid(x)
NodeId silu(test::NetworkBuilder& net, const std::string& name, NodeId x) {
  return net.op(name, models::Mul{}, {x, net.op(name + ".sigmoid", models::Sigmoid{}, {x})});
}

// As EfficientNetV2 has them: a 3 x 3 convolution that expands and a projection, then an inverted
// residual with a gate, both added to what they read.
models::Model efficient_net_v2(std::uint64_t seed) {
  test::NetworkBuilder net({3, 12, 12}, test::varied_parameters(seed));
  NodeId x = silu(net, "stem.silu", net.conv_bn("stem", net.input(), 3, 8));
  const NodeId expanded = silu(net, "fused.silu", net.conv_bn("fused.expand", x, 8, 32));
  x = net.op("fused.sum", models::Add{}, {net.conv_bn("fused.project", expanded, 32, 8, 1), x});
  NodeId y = silu(net, "mb.silu1", net.conv_bn("mb.expand", x, 8, 32, 1));
  y = silu(net, "mb.silu2", net.conv_bn("mb.depthwise", y, 32, 32, 3, 32));
  const NodeId squeezed =
      net.conv("mb.reduce", net.op("mb.pool", models::GlobalAvgPool{}, {y}), 32, 4, 1, 1, true);
  const NodeId excited = net.conv("mb.excite", silu(net, "mb.silu3", squeezed), 4, 32, 1, 1, true);
  y = net.op("mb.gated", models::Mul{}, {y, net.op("mb.gate", models::Sigmoid{}, {excited})});
  x = net.op("mb.sum", models::Add{}, {net.conv_bn("mb.project", y, 32, 8, 1), x});
  x = silu(net, "head.silu", net.conv_bn("head.conv", x, 8, 32, 1));
  x = net.op("flat", models::Flatten{}, {net.op("pool", models::GlobalAvgPool{}, {x})});
  return net.finish(net.linear("head", x, 32, 5), 5);
}

// Every BatchNorm gets the moments that its input has for these images.
void measure(models::Model& model, const at::Tensor& images) {
  for (const auto& node : model.graph.nodes) {
    if (!models::is<models::BatchNorm>(node)) continue;
    models::Taps taps{{node.inputs[0]}, {}};
    models::execute(model.graph, model.parameters, images, &taps);
    model.parameters.at(node.params.at("mean")) = taps.values[0].mean(at::IntArrayRef{0, 2, 3});
    model.parameters.at(node.params.at("variance")) =
        taps.values[0].var(at::IntArrayRef{0, 2, 3}, false);
  }
}

// Of functions, gates and sums without an activation, none has a BatchNorm after it. The images are
// normal, so that what 8 bits keep for longer tails only costs.
TEST(Moments, GiveRangesThatHoldInEfficientNetV2) {
  auto model = efficient_net_v2(7);
  const auto images = test::normal({64, 3, 12, 12}, 8);
  measure(model, images);
  QuantOptions options;
  options.weights.num_bits = options.activations.num_bits = 8;
  options.activations.range = ActivationRange::bn_statistics;
  Student student = test::quantized(model, options);
  calibrate(student, [] { return at::Tensor(); });
  const auto centred = [&](const models::Graph& graph, const models::ParameterStore& parameters) {
    const auto y = models::execute(graph, parameters, images);
    return y - y.mean(at::IntArrayRef{0}, true);
  };
  const auto expected = centred(model.graph, model.parameters);
  const auto found = centred(student.graph, student.parameters);
  const auto norms = expected.square().sum() * found.square().sum();
  EXPECT_GT(((expected * found).sum() / norms.sqrt()).item<double>(), 0.985);
}

}  // namespace
}  // namespace zsq::quant::moments_test
