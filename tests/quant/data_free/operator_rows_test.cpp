// SPDX-License-Identifier: Apache-2.0
// Inferred distributions of operators against images drawn from the distribution that BatchNorm
// layers claim, and against the laws that hold by definition.
#include "quant/data_free/operator_rows.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>

#include "models/execute.h"
#include "quant/data_free/distribution.h"
#include "quant/data_free/moments.h"
#include "tests/support/network_builder.h"

namespace zsq::quant::operator_rows_test {
namespace {

using models::BinaryKind;
using models::Elementwise;
using models::Function;
using models::NodeId;
using models::ReduceKind;

constexpr std::int64_t kImages = 8000;

// Two maps of 3 channels that BatchNorm layers give the means and deviations of `net`'s fill.
class TwoMaps {
 public:
  TwoMaps() : net({6, 5, 4}, test::varied_parameters(3)) {
    a = norm("a", net.op("left", models::Slice{1, 0, 3}, {net.input()}));
    b = norm("b", net.op("right", models::Slice{1, 3, 6}, {net.input()}));
  }

  NodeId norm(const std::string& name, NodeId x) {
    const NodeId id = net.batch_norm(name, x, 3);
    net.at(name + ".mean").zero_();
    net.at(name + ".variance").fill_(1);
    std::get<models::BatchNorm>(net.model().graph[id].op).eps = 0;
    return id;
  }
  NodeId function(const std::string& name, Elementwise op, NodeId x) {
    return net.op(name, op, {x});
  }
  NodeId constant(const std::string& name, const at::Tensor& value) {
    net.model().parameters.set(name, value);
    return net.op(name, models::Parameter{}, {}, {{"value", name}});
  }
  // Values from 1/2 to 3/2.
  NodeId positive(const std::string& name, NodeId x) {
    const NodeId half = constant(name + ".half", at::tensor({0.5F}).view({1, 1, 1}));
    return net.op(name, models::Add{}, {net.op(name + ".gate", models::Sigmoid{}, {x}), half});
  }

  // At each place: means within 6 % of a deviation, variances within `slack` of themselves.
  void expect_drawn(const std::vector<NodeId>& nodes, double slack = 0.2) {
    const auto model = net.finish(nodes.back());
    const auto told = activation_moments(model.graph, model.parameters, nodes);
    models::Taps taps{nodes, {}};
    models::execute(model.graph, model.parameters, test::normal({kImages, 6, 5, 4}, 77), &taps);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const auto& name = model.graph[nodes[i]].name;
      const auto& x = taps.values[i];
      const auto mean = x.mean(at::IntArrayRef{0}, true);
      const auto variance = x.var(at::IntArrayRef{0}, true, true);
      const auto deviation = variance.sqrt().add(1e-3);
      ASSERT_EQ(told[i].mean.sizes(), mean.sizes()) << name;
      EXPECT_LT((told[i].mean - mean).abs().div(deviation).max().item<float>(), 0.08) << name;
      EXPECT_LT((told[i].variance - variance).abs().div(deviation.square()).max().item<float>(),
                slack)
          << name;
    }
  }

  at::Tensor rows(NodeId id) {
    const auto model = net.finish(id);
    return activation_distributions(model.graph, model.parameters, {id})[0];
  }

  test::NetworkBuilder net;
  NodeId a, b;
};

TEST(OperatorRows, OfFunctionsAgreeWithDrawnImages) {
  TwoMaps maps;
  std::vector<NodeId> nodes;
  for (const auto& [name, op] : std::vector<std::pair<std::string, Elementwise>>{
           {"elu", {Function::elu, 1.5}},
           {"celu", {Function::celu, 0.7}},
           {"selu", {Function::selu, 1.67, 1.05}},
           {"tanh", {Function::tanh}},
           {"softplus", {Function::softplus}},
           {"mish", {Function::mish}},
           {"gelu", {Function::gelu_tanh}},
           {"threshold", {Function::thresholded_relu, 0.4}},
           {"abs", {Function::abs}},
           {"square", {Function::power, 2}},
           {"sine", {Function::sin}},
           {"round", {Function::round}}})
    nodes.push_back(maps.function(name, op, maps.a));
  maps.net.model().parameters.set("slope", at::tensor({0.5F, -0.25F, 2.0F}).view({3, 1, 1}));
  nodes.push_back(maps.net.op("prelu", models::PRelu{}, {maps.a}, {{"slope", "slope"}}));
  maps.net.model().parameters.set("scale", at::tensor({0.5F, 4.0F, 1.0F}).view({3, 1, 1}));
  nodes.push_back(maps.net.op("gate", models::HardSigmoid{}, {maps.a}, {{"scale", "scale"}}));
  nodes.push_back(maps.net.op("swish", models::HardSwish{}, {maps.a}, {{"scale", "scale"}}));
  const NodeId positive = maps.positive("positive", maps.b);
  for (const auto& [name, op] :
       std::vector<std::pair<std::string, Elementwise>>{{"log", {Function::log}},
                                                        {"sqrt", {Function::sqrt}},
                                                        {"reciprocal", {Function::reciprocal}},
                                                        {"root", {Function::power, -0.5}}})
    nodes.push_back(maps.function(name, op, positive));
  maps.expect_drawn(nodes);
}

TEST(OperatorRows, OfPairsAgreeWithDrawnImages) {
  TwoMaps maps;
  auto& net = maps.net;
  const NodeId positive = maps.positive("positive", maps.b);
  const NodeId scale = maps.constant("scale", at::tensor({0.5F, 2.0F, -3.0F}).view({3, 1, 1}));
  const NodeId relu = net.relu("relu", maps.a);
  std::vector<NodeId> nodes;
  const auto pair = [&](const std::string& name, BinaryKind kind, NodeId x, NodeId y) {
    nodes.push_back(net.op(name, models::Binary{kind}, {x, y}));
  };
  pair("sub", BinaryKind::sub, maps.a, maps.b);
  pair("div", BinaryKind::div, maps.a, positive);
  pair("max", BinaryKind::maximum, maps.a, maps.b);
  pair("min", BinaryKind::minimum, maps.a, maps.b);
  pair("pow", BinaryKind::power, positive, maps.a);
  pair("one_source", BinaryKind::sub, maps.a, relu);
  pair("by_constant", BinaryKind::div, maps.a, scale);
  pair("of_constant", BinaryKind::sub, scale, maps.a);
  maps.expect_drawn(nodes);
}

TEST(OperatorRows, OfChannelsAgreeWithDrawnImages) {
  TwoMaps maps;
  auto& net = maps.net;
  const NodeId relu = net.relu("relu", maps.a);
  const NodeId all = net.op("all", models::Concat{1}, {relu, maps.b});
  std::vector<NodeId> nodes;
  for (const auto& [name, kind] :
       std::vector<std::pair<std::string, ReduceKind>>{{"mean", ReduceKind::mean},
                                                       {"sum", ReduceKind::sum},
                                                       {"max", ReduceKind::max},
                                                       {"min", ReduceKind::min}}) {
    nodes.push_back(net.op(name, models::Reduce{kind, {1}, true}, {all}));
    nodes.push_back(net.op(name + ".flat", models::Reduce{kind, {1}, false}, {all}));
  }
  nodes.push_back(net.op("softmax", models::Softmax{1}, {all}));
  // [1, 1, 6, 20] by [1, 1, 20, 6], both known at every place: sums over the places of a map.
  maps.expect_drawn(nodes, 0.3);
}

TEST(OperatorRows, OfProductsOfFeaturesAgreeWithDrawnImages) {
  TwoMaps maps;
  auto& net = maps.net;
  // A constant for each place, so that values of a row differ in their distribution.
  const NodeId scale = maps.constant("scale", test::normal({3, 5, 4}, 9));
  const NodeId x = net.op("x", models::Mul{}, {maps.a, scale});
  const NodeId y =
      net.op("y", models::Transpose{{0, 1, 3, 2}}, {net.op("z", models::Mul{}, {maps.b, scale})});
  maps.expect_drawn({net.op("product", models::MatMul{}, {x, y})}, 0.25);
}

// A pool's law: deviations times sqrt(r + (1 - r) / n).
TEST(OperatorRows, OfPlacesAreThoseOfPools) {
  TwoMaps maps;
  const auto rows =
      maps.rows(maps.net.op("mean", models::Reduce{ReduceKind::mean, {2, 3}, true}, {maps.a}));
  const auto gamma = maps.net.at("a.gamma"), beta = maps.net.at("a.beta");
  const double share = kFarCorrelation + (1 - kFarCorrelation) / 20;
  EXPECT_TRUE(distribution::mean(rows).flatten().allclose(beta, 1e-3, 1e-4));
  EXPECT_TRUE(distribution::variance(rows).flatten().allclose(gamma.square() * share, 1e-3));
  // The largest of 20 values: between one value and the largest of 20 independent ones.
  TwoMaps other;
  const auto largest =
      other.rows(other.net.op("max", models::Reduce{ReduceKind::max, {2, 3}, true}, {other.a}));
  const auto height =
      (distribution::mean(largest).flatten() - beta).div(gamma.abs()).min().item<double>();
  EXPECT_GT(height, 0.8);
  EXPECT_LT(height, 1.87);
}

TEST(OperatorRows, OfResizedAndPaddedMapsKeepTheirDistribution) {
  TwoMaps maps;
  auto& net = maps.net;
  models::Interpolate larger;
  larger.size = {10, 8};
  const NodeId resized = net.op("resized", larger, {maps.a});
  models::Pad reflect{{0, 0, 1, 2}, {0, 0, 2, 1}};
  reflect.mode = models::PadMode::reflect;
  const NodeId padded = net.op("padded", reflect, {maps.a});
  const auto model = net.finish(net.op("both", models::Flatten{}, {padded}));
  const auto told = activation_moments(model.graph, model.parameters, {resized, padded});
  const auto variance = net.at("a.gamma").square().view({1, 3, 1, 1});
  EXPECT_EQ(told[0].mean.sizes(), (std::vector<std::int64_t>{1, 3, 10, 8}));
  EXPECT_EQ(told[1].mean.sizes(), (std::vector<std::int64_t>{1, 3, 8, 7}));
  EXPECT_TRUE(told[1].variance.allclose(variance.expand({1, 3, 8, 7}), 1e-3));
  const auto ratio = told[0].variance / variance;  // of means of up to four neighbours
  EXPECT_LT(ratio.max().item<double>(), 1);
  EXPECT_GT(ratio.min().item<double>(), 0.5);
}

// No value that is not a number, and none that nothing makes, where functions are not defined.
TEST(OperatorRows, AreFiniteWhereFunctionsAreNotDefined) {
  for (const Elementwise op :
       {Elementwise{Function::log}, Elementwise{Function::sqrt}, Elementwise{Function::reciprocal},
        Elementwise{Function::power, 0.5}, Elementwise{Function::power, -1},
        Elementwise{Function::power, -0.5}}) {
    TwoMaps maps;
    const auto rows = maps.rows(maps.function("f", op, maps.a));
    EXPECT_TRUE(rows.isfinite().all().item<bool>());
    EXPECT_LT(rows.abs().max().item<double>(), 2e3);
  }
  TwoMaps maps;
  maps.net.at("a.gamma").mul_(50);
  EXPECT_TRUE(distribution::variance(maps.rows(maps.function("exp", {Function::exp}, maps.a)))
                  .isfinite()
                  .all()
                  .item<bool>());
  TwoMaps pair;
  const auto rows =
      pair.rows(pair.net.op("div", models::Binary{BinaryKind::div}, {pair.a, pair.b}));
  EXPECT_TRUE(rows.isfinite().all().item<bool>());
}

TEST(OperatorRows, OfSoftmaxReachOneWhereOneInputDominates) {
  TwoMaps maps;
  maps.net.at("a.beta").copy_(at::tensor({12.0F, 0.0F, 0.0F}));
  const auto rows = maps.rows(maps.net.op("softmax", models::Softmax{1}, {maps.a}));
  EXPECT_GE(rows.min().item<double>(), 0);
  EXPECT_LE(rows.max().item<double>(), 1);
  EXPECT_GT(distribution::mean(rows)[0][0].min().item<double>(), 0.99);
  EXPECT_LT(distribution::mean(rows)[0][1].max().item<double>(), 0.01);
}

}  // namespace
}  // namespace zsq::quant::operator_rows_test
