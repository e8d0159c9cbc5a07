// SPDX-License-Identifier: Apache-2.0
#include "models/execute.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "models/load.h"

namespace zsq::models::execute_test {
namespace {

// A graph of one operator over an image [C, H, W]; the shape rule must agree with what is computed.
at::Tensor run_one(const Op& op, const at::Tensor& x, ParameterStore parameters = {},
                   std::map<std::string, std::string> params = {}) {
  Graph graph;
  graph.input_shape = {x.size(1), x.size(2), x.size(3)};
  graph.add({"input", Input{}, {}});
  graph.output = graph.add({"op", op, {0}, std::move(params)});
  const auto result = execute(graph, parameters, x);
  auto shape = result.sizes().vec();
  shape[0] = 1;
  EXPECT_EQ(infer_shapes(graph, parameters)[1], shape) << op_name(op);
  return result;
}

at::Tensor image(std::int64_t channels = 3, std::int64_t height = 9, std::int64_t width = 8) {
  return at::linspace(-3, 4, 2 * channels * height * width)
      .sin()
      .mul(3)
      .reshape({2, channels, height, width});
}

TEST(Execute, ConvPadsEachSideByItself) {
  const auto x = image();
  ParameterStore parameters;
  parameters.set("w", at::linspace(-1, 1, 4 * 3 * 3 * 3).reshape({4, 3, 3, 3}));
  parameters.set("b", at::linspace(0, 1, 4));
  Conv2d conv{{2, 2}, {0, 1, 1, 2}};
  const auto expected = at::conv2d(at::constant_pad_nd(x, {1, 2, 0, 1}), parameters.at("w"),
                                   parameters.at("b"), {2, 2});
  const auto result = run_one(conv, x, parameters, {{"weight", "w"}, {"bias", "b"}});
  EXPECT_TRUE(at::allclose(result, expected, 1e-5, 1e-5));
}

TEST(Execute, GroupedDilatedConvWithoutBias) {
  const auto x = image(4);
  ParameterStore parameters;
  parameters.set("w", at::linspace(-1, 1, 6 * 2 * 3 * 3).reshape({6, 2, 3, 3}));
  const auto result =
      run_one(Conv2d{{1, 1}, {2, 1, 2, 1}, {2, 1}, 2}, x, parameters, {{"weight", "w"}});
  const auto expected = at::conv2d(x, parameters.at("w"), {}, {1, 1}, {2, 1}, {2, 1}, 2);
  EXPECT_TRUE(at::allclose(result, expected, 1e-5, 1e-5));
}

// Every window mean by hand: sum of what lies on the map over the number of elements that count.
TEST(Execute, AveragePoolCountsOnlyTheMapWhereAsked) {
  const auto x = at::ones({1, 1, 4, 4});
  const auto excluded = run_one(AvgPool{{3, 3}, {2, 2}, {0, 0, 1, 1}, false, false}, x);
  EXPECT_TRUE(at::allclose(excluded, at::ones({1, 1, 2, 2})));
  const auto included = run_one(AvgPool{{3, 3}, {2, 2}, {0, 0, 1, 1}, false, true}, x);
  EXPECT_TRUE(at::allclose(included,
                           at::tensor({1.0F, 2.0F / 3, 2.0F / 3, 4.0F / 9}).reshape({1, 1, 2, 2})));
}

TEST(Execute, PoolsInCeilModeDropWindowsThatStartBehindTheMap) {
  const auto x = at::linspace(0, 24, 25).reshape({1, 1, 5, 5});
  EXPECT_EQ(run_one(MaxPool{{2, 2}, {2, 2}, {}, {1, 1}, true}, x).sizes(),
            (at::IntArrayRef{1, 1, 3, 3}));
  EXPECT_EQ(run_one(MaxPool{{2, 2}, {3, 3}, {1, 1, 1, 1}, {1, 1}, true}, x).sizes(),
            (at::IntArrayRef{1, 1, 2, 2}));
  EXPECT_EQ(run_one(MaxPool{{2, 2}, {3, 3}, {}, {1, 1}, true}, x).sizes(),
            (at::IntArrayRef{1, 1, 2, 2}));
}

TEST(Execute, MaxPoolPadsWithMinusInfinity) {
  const auto x = at::full({1, 1, 3, 3}, -5.0);
  const auto result = run_one(MaxPool{{3, 3}, {2, 2}, {0, 0, 1, 1}}, x);
  EXPECT_TRUE(at::allclose(
      result,
      at::full({1, 1, 2, 2}, -5.0).slice(2, 0, result.size(2)).slice(3, 0, result.size(3))));
}

TEST(Execute, BatchNormUsesItsRunningMoments) {
  const auto x = image(2);
  ParameterStore parameters;
  parameters.set("g", at::tensor({2.0F, -1.0F}));
  parameters.set("b", at::tensor({0.5F, 0.25F}));
  parameters.set("m", at::tensor({1.0F, -2.0F}));
  parameters.set("v", at::tensor({4.0F, 0.0F}));
  const auto result = run_one(BatchNorm{1e-3}, x, parameters,
                              {{"gamma", "g"}, {"beta", "b"}, {"mean", "m"}, {"variance", "v"}});
  const auto first = (x.select(1, 0) - 1) / std::sqrt(4.001) * 2 + 0.5;
  const auto second = (x.select(1, 1) + 2) / std::sqrt(0.001) * -1 + 0.25;
  EXPECT_TRUE(at::allclose(result.select(1, 0), first, 1e-4, 1e-4));
  EXPECT_TRUE(at::allclose(result.select(1, 1), second, 1e-4, 1e-4));
}

TEST(Execute, ElementwiseFunctionsFollowTheirFormulas) {
  const auto x = image();
  const auto relu6 = (x + 3).clamp(0, 6);
  EXPECT_TRUE(at::allclose(run_one(Clip{}, x), x.clamp_min(0)));
  EXPECT_TRUE(at::allclose(run_one(Clip{-1, 2}, x), x.clamp(-1, 2)));
  EXPECT_TRUE(
      at::allclose(run_one(Clip{-std::numeric_limits<float>::infinity(), 1}, x), x.clamp_max(1)));
  EXPECT_TRUE(at::allclose(run_one(LeakyRelu{0.1}, x), x.clamp_min(0) + 0.1 * x.clamp_max(0)));
  EXPECT_TRUE(at::allclose(run_one(Sigmoid{}, x), 1 / (1 + (-x).exp())));
  EXPECT_TRUE(at::allclose(run_one(HardSigmoid{}, x), relu6 / 6, 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(run_one(HardSwish{}, x), x * relu6 / 6, 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(run_one(Softmax{}, x).sum(1), at::ones({2, 9, 8})));
}

TEST(Execute, AClipMayHaveBoundsPerChannel) {
  const auto x = image(), lower = at::tensor({-0.25F, 0.F, 0.25F}).view({1, 3, 1, 1}),
             upper = at::tensor({0.5F, 1.F, 100.F}).view({1, 3, 1, 1});
  ParameterStore parameters;
  parameters.set("lower", lower);
  parameters.set("upper", upper);
  const auto above = run_one(Clip{0, 6}, x, parameters, {{"upper", "upper"}});
  EXPECT_TRUE(above.equal(x.clamp(lower * 0, upper)));
  const auto both = run_one(Clip{0, 6}, x, parameters, {{"lower", "lower"}, {"upper", "upper"}});
  EXPECT_TRUE(both.equal(x.clamp(lower, upper)));
}

TEST(Execute, ShapeOperators) {
  const auto x = image(4, 6, 8);
  EXPECT_TRUE(run_one(Flatten{}, x).equal(x.reshape({2, 192})));
  EXPECT_TRUE(run_one(Reshape{{2, -1, 8}}, x).equal(x.reshape({2, 2, 12, 8})));
  EXPECT_TRUE(run_one(Transpose{{0, 2, 3, 1}}, x).equal(x.permute({0, 2, 3, 1})));
  EXPECT_TRUE(run_one(Slice{2, 1, 6, 2}, x).equal(x.slice(2, 1, 6, 2)));
  EXPECT_TRUE(run_one(Pad{{0, 1, 2, 3}, {0, 4, 5, 6}, 7}, x)
                  .equal(at::constant_pad_nd(x, {3, 6, 2, 5, 1, 4}, 7)));
  EXPECT_TRUE(run_one(Resize{{2, 3}}, x).equal(x.repeat_interleave(2, 2).repeat_interleave(3, 3)));
  const auto mean = x.sum({2, 3}) / 48;
  EXPECT_TRUE(at::allclose(run_one(GlobalAvgPool{false}, x), mean, 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(run_one(GlobalAvgPool{}, x), mean.reshape({2, 4, 1, 1}), 1e-5, 1e-6));
}

// input -> a -> (b reads it twice) -> output, so values are freed and tapped along the way.
struct Branches {
  Graph graph;
  ParameterStore parameters;
  NodeId relu, scaled;

  Branches() {
    graph.input_shape = {3, 4, 4};
    graph.add({"input", Input{}, {}});
    relu = graph.add({"relu", Clip{}, {0}});
    const auto gain = graph.add({"gain", Parameter{}, {}, {{"value", "gain.value"}}});
    scaled = graph.add({"scaled", Mul{}, {relu, gain}});
    const auto twice = graph.add({"twice", Add{}, {scaled, scaled}});
    graph.output = graph.add({"joined", Concat{}, {twice, relu}});
    parameters.set("gain.value", at::linspace(1, 3, 3).reshape({3, 1, 1}));
  }
};

TEST(Execute, JoinsBranchesAndReturnsTaps) {
  Branches net;
  const auto x = image(3, 4, 4);
  Taps taps{{net.scaled, net.relu, 0}, {}};
  const auto result = execute(net.graph, net.parameters, x, &taps);
  const auto relu = x.clamp_min(0);
  const auto scaled = relu * net.parameters.at("gain.value");
  EXPECT_TRUE(at::allclose(result.slice(1, 0, 3), 2 * scaled));
  EXPECT_TRUE(result.slice(1, 3).equal(relu));
  ASSERT_EQ(taps.values.size(), 3U);
  EXPECT_TRUE(at::allclose(taps.values[0], scaled));
  EXPECT_TRUE(taps.values[1].equal(relu));
  EXPECT_TRUE(taps.values[2].equal(x));
  const auto shapes = infer_shapes(net.graph, net.parameters);
  EXPECT_EQ(shapes.back(), (Shape{1, 6, 4, 4}));
  EXPECT_EQ(shapes[static_cast<std::size_t>(net.scaled)], (Shape{1, 3, 4, 4}));
}

TEST(Execute, GradientsReachInputAndParameters) {
  Branches net;
  const auto x = image(3, 4, 4).requires_grad_();
  net.parameters.at("gain.value").requires_grad_();
  execute(net.graph, net.parameters, x).sum().backward();
  const auto positive = x.detach().gt(0).to(at::kFloat);
  EXPECT_TRUE(
      at::allclose(x.grad(), positive * (2 * net.parameters.at("gain.value").detach() + 1)));
  EXPECT_TRUE(at::allclose(net.parameters.at("gain.value").grad().flatten(),
                           2 * x.detach().clamp_min(0).sum({0, 2, 3}), 1e-5, 1e-5));
}

TEST(Execute, KeepsChannelsLast) {
  Graph graph;
  graph.input_shape = {3, 9, 8};
  ParameterStore parameters;
  parameters.set("w", at::linspace(-1, 1, 8 * 27).reshape({8, 3, 3, 3}));
  for (const auto* name : {"g", "b", "m", "v"}) parameters.set(name, at::ones({8}));
  graph.add({"input", Input{}, {}});
  graph.add({"conv", Conv2d{{2, 2}, {0, 0, 1, 1}}, {0}, {{"weight", "w"}}});
  graph.add(
      {"bn", BatchNorm{}, {1}, {{"gamma", "g"}, {"beta", "b"}, {"mean", "m"}, {"variance", "v"}}});
  graph.add({"relu", Clip{0, 6}, {2}});
  graph.add({"pool", MaxPool{{2, 2}, {1, 1}}, {3}});
  graph.output = graph.add({"sum", Add{}, {4, 4}});
  const auto x = image().contiguous(at::MemoryFormat::ChannelsLast);
  Taps taps{{1, 2, 3, 4, 5}, {}};
  execute(graph, parameters, x, &taps);
  for (const auto& value : taps.values) {
    EXPECT_TRUE(value.is_contiguous(at::MemoryFormat::ChannelsLast));
  }
}

TEST(Execute, RefusesAnImageOfAnotherShape) {
  Branches net;
  EXPECT_THROW(execute(net.graph, net.parameters, image(3, 5, 4)), Error);
}

TEST(Graph, RefusesDuplicateNamesAndForwardReferences) {
  Graph graph;
  graph.add({"input", Input{}, {}});
  EXPECT_THROW(graph.add({"input", Clip{}, {0}}), Error);
  EXPECT_THROW(graph.add({"relu", Clip{}, {1}}), Error);
  EXPECT_THROW(graph.id_of("relu"), Error);
}

TEST(ParameterStore, KeepsOrderAndClonesDeeply) {
  ParameterStore store;
  store.set("b", at::zeros({2}));
  store.set("a", at::ones({2}));
  store.set("b", at::ones({3}).requires_grad_());
  EXPECT_EQ(store.names(), (std::vector<std::string>{"b", "a"}));
  auto copy = store.clone();
  EXPECT_FALSE(copy.at("b").requires_grad());
  copy.at("a").fill_(5);
  EXPECT_TRUE(store.at("a").equal(at::ones({2})));
  EXPECT_THROW(store.at("c"), Error);
}

TEST(MultiplyAccumulates, CountsConvolutionsAndLinearLayers) {
  Model model;
  model.graph.input_shape = {4, 8, 8};
  model.parameters.set("w", at::zeros({6, 2, 3, 3}));
  model.parameters.set("fc", at::zeros({10, 6}));
  model.graph.add({"input", Input{}, {}});
  model.graph.add({"conv", Conv2d{{2, 2}, {1, 1, 1, 1}, {1, 1}, 2}, {0}, {{"weight", "w"}}});
  model.graph.add({"pool", GlobalAvgPool{false}, {1}});
  const auto weight = model.graph.add({"weight", Parameter{}, {}, {{"value", "fc"}}});
  model.graph.output = model.graph.add({"fc", Linear{}, {2, weight}});
  EXPECT_EQ(multiply_accumulates(model),
            (std::vector<std::int64_t>{0, 6 * 4 * 4 * 2 * 9, 0, 0, 60}));
}

// A convolution, BatchNorm, a residual addition and a classifier.
TEST(Execute, HalfPrecisionStaysNearAndEndsInFloat) {
  Graph graph;
  ParameterStore parameters;
  parameters.set("w", at::linspace(-3, 2, 3 * 3 * 3 * 3).sin().reshape({3, 3, 3, 3}));
  parameters.set("fc", at::linspace(-1, 5, 4 * 3).cos().reshape({4, 3}));
  for (const char* name : {"gamma", "variance"}) parameters.set(name, at::full({3}, 2.0));
  for (const char* name : {"beta", "mean"}) parameters.set(name, at::full({3}, 0.3));
  parameters.at("w").requires_grad_();
  const auto x = image();
  graph.input_shape = {3, 9, 8};
  graph.add({"input", Input{}, {}});
  graph.add({"conv", Conv2d{{1, 1}, {1, 1, 1, 1}}, {0}, {{"weight", "w"}}});
  graph.add({"bn",
             BatchNorm{},
             {1},
             {{"gamma", "gamma"}, {"beta", "beta"}, {"mean", "mean"}, {"variance", "variance"}}});
  graph.add({"add", Add{}, {2, 0}, {}});
  graph.add({"relu", Clip{0, std::numeric_limits<float>::infinity()}, {3}, {}});
  graph.add({"pool", GlobalAvgPool{false}, {4}, {}});
  graph.output = graph.add({"fc", Linear{}, {5}, {{"weight", "fc"}}});
  std::vector<at::Tensor> logits, gradients;
  for (const auto precision : {Precision::fp32, Precision::tf32, Precision::bf16}) {
    Taps taps{{1}, {}};
    parameters.at("w").mutable_grad() = at::Tensor();
    logits.push_back(execute(graph, parameters, x, &taps, precision));
    EXPECT_EQ(taps.values[0].scalar_type(),
              precision == Precision::bf16 ? at::kBFloat16 : at::kFloat);
    EXPECT_EQ(logits.back().scalar_type(), at::kFloat);
    logits.back().square().sum().backward();
    gradients.push_back(parameters.at("w").grad());
  }
  EXPECT_TRUE(logits[1].equal(logits[0]));
  EXPECT_FALSE(logits[2].equal(logits[0]));
  EXPECT_TRUE(at::allclose(logits[2], logits[0], 2e-2, 2e-2));
  EXPECT_EQ(gradients[2].scalar_type(), at::kFloat);
  EXPECT_TRUE(at::allclose(gradients[2], gradients[0], 5e-2,
                           5e-2 * gradients[0].abs().max().item<double>()));
}

}  // namespace
}  // namespace zsq::models::execute_test
