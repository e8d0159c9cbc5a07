// SPDX-License-Identifier: Apache-2.0
#include "quant/fold_batch_norm.h"

#include <ATen/ops/conv2d.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <gtest/gtest.h>

#include "models/execute.h"
#include "quant/calibration/ranges.h"
#include "tests/support/network_builder.h"
#include "tests/support/quantized.h"

namespace zsq::quant {
namespace {

using models::NodeId;

Student student_of(const models::Model& model, Symmetry symmetric = Symmetry::no,
                   bool per_channel = true, bool every_step = false, std::int64_t bits = 4) {
  QuantOptions options;
  options.weights.num_bits = bits;
  options.weights.per_channel = per_channel;
  options.weights.symmetric = symmetric;
  options.weights.range_every_step = every_step;
  return test::quantized(model, options);
}

at::Tensor dequantized(const IntegerWeights& integer) {
  const auto shape = [&](const at::Tensor& t) {
    std::vector<std::int64_t> sizes(integer.codes.dim(), 1);
    sizes[0] = -1;
    return t.reshape(sizes);
  };
  return integer.codes.sub(shape(integer.zero_point)).to(at::kFloat).mul(shape(integer.scale));
}

// Every conv with its BatchNorm, out of codes and folded scales, against the student's own output
// there. Returns how many had a BatchNorm.
int expect_equal(const Student& student, const at::Tensor& image) {
  int folded = 0;
  for (const auto& site : weight_sites(student)) {
    const auto integer = integer_weights(student, site);
    const auto& spec = site.op->spec();
    EXPECT_EQ(integer.codes.scalar_type(), at::kInt);
    EXPECT_GE(integer.codes.min().item<int>(), spec.qmin);
    EXPECT_LE(integer.codes.max().item<int>(), spec.qmax);
    EXPECT_GE(integer.zero_point.min().item<int>(), spec.qmin);
    EXPECT_LE(integer.zero_point.max().item<int>(), spec.qmax);
    EXPECT_GT(integer.scale.min().item<float>(), 0);
    const auto& layer = student.graph[site.layer];
    const NodeId end = integer.batch_norm < 0 ? site.layer : integer.batch_norm;
    folded += integer.batch_norm >= 0;
    models::Taps taps{{layer.inputs[0], end}, {}};
    models::execute(student.graph, student.parameters, image, &taps);
    const auto* conv = models::get_if<models::Conv2d>(layer);
    const auto y = conv ? at::conv2d(taps.values[0], dequantized(integer), integer.bias,
                                     conv->stride, at::IntArrayRef{conv->pads[0], conv->pads[1]},
                                     conv->dilation, conv->groups)
                        : at::linear(taps.values[0], dequantized(integer), integer.bias);
    const auto largest = taps.values[1].abs().max().item<float>();
    EXPECT_LT(y.sub(taps.values[1]).abs().max().item<float>(), 1e-5 * largest) << layer.name;
  }
  return folded;
}

TEST(IntegerWeights, EqualConvThenBatchNorm) {
  for (const Symmetry symmetric : {Symmetry::no, Symmetry::yes})
    for (const bool per_channel : {false, true}) {
      const auto student = student_of(test::residual_network(), symmetric, per_channel);
      EXPECT_EQ(expect_equal(student, test::normal({2, 3, 12, 12}, 3)), 4);
    }
}

TEST(IntegerWeights, RangeEveryStepUsesTheWeightOfNow) {
  auto student = student_of(test::residual_network(), Symmetry::no, true, true);
  for (const auto& site : weight_sites(student)) student.parameters.at(site.parameter).mul_(1.7);
  expect_equal(student, test::normal({2, 3, 12, 12}, 3));
}

TEST(IntegerWeights, BiasDepthwiseAndLinearWithBatchNorm) {
  test::NetworkBuilder net;
  NodeId x =
      net.relu("relu", net.batch_norm("bn", net.conv("stem", net.input(), 3, 8, 3, 1, true), 8));
  x = net.conv_bn_relu("dw", x, 8, 8, 3, 8);
  x = net.op("pool", models::GlobalAvgPool{false}, {x});
  x = net.batch_norm("fc1.bn", net.linear("fc1", x, 8, 6), 6);
  const auto model = net.finish(net.linear("fc2", x, 6, 4));
  EXPECT_EQ(expect_equal(student_of(model), test::normal({2, 3, 12, 12}, 3)), 3);
}

// gamma -1: scale as before, q -> -1 - q, z -> -1 - z.
TEST(IntegerWeights, NegativeGammaMirrorsCodes) {
  auto model = test::residual_network();
  const auto plus = student_of(model);
  const auto site = weight_sites(plus)[1];
  const std::string gamma = "a.bn.gamma";
  auto minus = plus;
  minus.parameters = plus.parameters.clone();
  minus.parameters.at(gamma).neg_();
  const auto a = integer_weights(plus, site), b = integer_weights(minus, site);
  EXPECT_TRUE(at::equal(a.codes.neg().sub(1), b.codes));
  EXPECT_TRUE(at::equal(a.zero_point.neg().sub(1), b.zero_point));
  EXPECT_TRUE(at::equal(a.scale, b.scale));
}

// By hand: codes of b bits are consecutive, whatever the sign of gamma; with level tables they are
// the table, mirrored with the codes.
TEST(IntegerWeights, NameWhatACodeCanBe) {
  auto model = test::residual_network();
  model.parameters.at("a.bn.gamma")[0].abs_().neg_();
  const auto student = student_of(model, Symmetry::no, true, false, 3);
  for (const auto& site : weight_sites(student)) {
    const auto integer = integer_weights(student, site);
    EXPECT_EQ(integer.levels.defined(), site.op->spec().num_bits == 3);
    if (!integer.levels.defined()) continue;
    EXPECT_EQ(integer.levels.size(1), 8);
    EXPECT_TRUE(integer.levels.diff().eq(1).all().item<bool>());
    EXPECT_TRUE(at::equal(integer.levels.select(1, 0), integer.zero_point.neg().sub(4)));
  }
  QuantOptions options;
  options.weights.level_tables = {LevelTable::normal};
  const auto tables = test::quantized(model, options);
  for (const auto& site : weight_sites(tables)) {
    if (site.op->spec().num_bits != 4) continue;
    const auto integer = integer_weights(tables, site);
    const auto distances =
        integer.codes.flatten(1).unsqueeze(2).sub(integer.levels.unsqueeze(1)).abs();
    EXPECT_EQ(std::get<0>(distances.min(2)).max().item<int>(), 0) << site.parameter;
    EXPECT_TRUE(integer.levels.diff().gt(0).all().item<bool>());
    EXPECT_TRUE(integer.levels.diff().ne(1).any().item<bool>());
  }
}

// Symmetric codes of 8 bits change their signs and keep the zero point 0, so int8 holds them.
TEST(IntegerWeights, NegativeGammaGivesSymmetricCodesNoZeroPoint) {
  auto model = test::residual_network();
  model.parameters.at("a.bn.gamma")[0].abs_().neg_();
  model.parameters.at("a.weight")[0].abs_().neg_();  // the largest weight in size is negative
  const auto student = student_of(model, Symmetry::automatic, true, false, 8);
  expect_equal(student, test::normal({2, 3, 12, 12}, 3));
  for (const auto& site : weight_sites(student)) {
    const auto integer = integer_weights(student, site);
    EXPECT_TRUE(integer.zero_point.eq(0).all().item<bool>());
    EXPECT_LE(integer.codes.abs().max().item<int>(), 127);
  }
}

// Channels that give a constant: gamma 0; all weights 0; weights of 1e-30; all with variance 0. The
// int32 bias of each must fit.
TEST(IntegerWeights, DeadChannelsKeepAnOrdinaryScale) {
  auto model = test::residual_network();
  model.parameters.at("a.bn.gamma")[0] = 0;
  model.parameters.at("a.weight")[1].zero_();
  model.parameters.at("a.weight")[3].mul_(1e-30);
  model.parameters.at("a.bn.variance").narrow(0, 1, 3).zero_();
  model.parameters.at("a.weight")[2].zero_();
  auto student = student_of(model);
  const auto x = test::normal({2, 3, 12, 12}, 3);
  expect_equal(student, x);
  calibrate(student, [] { return test::normal({512, 3, 12, 12}, 4); });
  expect_equal(student, x);
  for (const auto& site : weight_sites(student)) {
    const auto integer = integer_weights(student, site);
    const auto* op = activation_quantizer(student.graph[student.graph[site.layer].inputs[0]]);
    const double step = student.parameters.at(op->scale_name()).item<float>();
    const auto bias = integer.bias.to(at::kDouble).div(integer.scale.to(at::kDouble).mul(step));
    EXPECT_LT(bias.abs().max().item<double>(), 1.001 * (1 << 30));
  }
}

TEST(IntegerWeights, ALayerOfDeadChannelsOnly) {
  auto model = test::residual_network();
  model.parameters.at("a.weight").zero_();
  const auto student = student_of(model);
  const auto integer = integer_weights(student, weight_sites(student)[1]);
  EXPECT_TRUE(integer.scale.eq(1).all().item<bool>());
  EXPECT_TRUE(dequantized(integer).eq(0).all().item<bool>());
}

}  // namespace
}  // namespace zsq::quant
