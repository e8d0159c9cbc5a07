// SPDX-License-Identifier: Apache-2.0
#include "quant/rewrites/split_channels.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "models/execute.h"
#include "models/load.h"
#include "quant/data_free/channel_ranges.h"
#include "quant/rewrites/equalize.h"
#include "quant/student.h"
#include "tests/support/network_builder.h"
#include "tests/support/quantized.h"

namespace zsq::quant::split_channels_test {
namespace {

using models::NodeId;

constexpr std::int64_t kWidth = 6;

at::Tensor& parameter(models::Model& model, const std::string& name) {
  return model.parameters.at(name);
}

// stem -> depthwise -> project; channels 1 and 4 end below 0, whatever the image, and values stay
// away from 6. Channel 2 alone matters.
models::Model network(std::int64_t kernel = 3) {
  test::NetworkBuilder net({3, 8, 8}, test::varied_parameters(5));
  NodeId x = net.relu6("a", net.conv_bn("stem", net.input(), 3, kWidth));
  x = net.relu6("b", net.conv_bn("depthwise", x, kWidth, kWidth, kernel, kWidth));
  x = net.conv_bn("project", x, kWidth, 4, 1);
  x = net.op("pool", models::GlobalAvgPool{}, {x});
  x = net.op("flatten", models::Flatten{}, {x});
  auto model = net.finish(net.linear("fc", x, 4, 5), 5);
  parameter(model, "stem.bn.gamma") = at::tensor({0.3f, 0.1f, 0.3f, 0.2f, -0.1f, 0.25f});
  parameter(model, "stem.bn.beta") = at::tensor({1.0f, -1.0f, 1.5f, 0.5f, -2.0f, 0.8f});
  parameter(model, "depthwise.bn.gamma").fill_(0.3);
  parameter(model, "depthwise.bn.beta").fill_(3);
  auto& weight = parameter(model, "project.weight");
  weight.mul_(0.01);
  weight.select(1, 2).mul_(1000);
  return model;
}

QuantOptions four_bits() {
  QuantOptions options;
  options.equalize = Equalization::depthwise;
  return options;
}

at::Tensor images(std::int64_t n = 8) { return test::normal({n, 3, 8, 8}, 8); }

models::Model split(const models::Model& model, const QuantOptions& options = four_bits()) {
  return split_channels(model, options, images(), 4, 1);
}

at::Tensor logits(const models::Model& model) {
  return models::execute(model.graph, model.parameters, images(16));
}

at::Tensor values_of(const models::Model& model, const std::string& node) {
  models::Taps taps{{model.graph.id_of(node)}, {}};
  models::execute(model.graph, model.parameters, images(16), &taps);
  return taps.values[0];
}

// Values on both sides of both bounds of the first ReLU6, which become `centre` - 3 to `centre` + 3
// before the second one; no padding, which copies would see shifted.
models::Model wide_network(double centre) {
  auto model = network(1);
  parameter(model, "stem.bn.gamma").mul_(5).select(0, 1).fill_(0.1);
  parameter(model, "stem.bn.gamma").select(0, 4).fill_(-0.1);
  parameter(model, "stem.bn.beta")[2] = 3;
  const auto weight = parameter(model, "depthwise.weight").flatten();
  parameter(model, "depthwise.bn.mean") = weight * 3;
  parameter(model, "depthwise.bn.variance") = weight.square();
  parameter(model, "depthwise.bn.gamma") = weight.sign();
  parameter(model, "depthwise.bn.beta").fill_(centre);
  return model;
}

TEST(SplitChannels, TheFunctionStays) {
  for (const auto& [centre, expansion] : {std::pair{1., 0.}, {5., 0.}, {1., 40.}, {5., 40.}}) {
    const auto model = wide_network(centre);
    auto options = four_bits();
    options.split_expansion = expansion;
    ASSERT_TRUE(has_splittable_channels(model, options));
    const auto [least, most] = values_of(model, "a").select(1, 2).aminmax();
    ASSERT_EQ(least.item<double>(), 0);
    ASSERT_EQ(most.item<double>(), 6);
    const auto before = logits(model), after = logits(split(model, options));
    EXPECT_LT((after - before).abs().max().item<double>(),
              1e-5 * before.abs().max().item<double>());
  }
}

// After the depthwise convolution all channels share a step; copies of one lie apart by parts of
// it.
TEST(SplitChannels, CopiesAreShiftedBehindTheDepthwiseConvolutionToo) {
  const auto model = wide_network(3);
  const auto after = split(model);
  const auto before = values_of(model, "b").select(1, 2), copies = values_of(after, "b");
  std::multiset<double> shifts;
  for (const int place : {1, 2, 4}) {
    const auto shift = copies.select(1, place) - before;
    EXPECT_LT((shift - shift.flatten()[0]).abs().max().item<double>(), 1e-5);
    shifts.insert(shift.flatten()[0].item<double>());
  }
  const double step = *shifts.rbegin() * 3;
  EXPECT_NEAR(*shifts.begin(), -step / 3, 1e-5);
  EXPECT_NEAR(*std::next(shifts.begin()), 0, 1e-5);
  EXPECT_GT(step, 4.0 / 15);
  EXPECT_LE(step, 6.0 / 15 + 1e-5);
}

// A place costs what a sixth of the convolutions around it does, 13 to 14 % of the network here.
// Six channels are a multiple of two, as runtimes like it, and so is what is appended.
TEST(SplitChannels, AppendsPlacesWithinTheBudget) {
  const auto model = network();
  const auto sum = [](const models::Model& model) {
    const auto macs = models::multiply_accumulates(model);
    return static_cast<double>(std::accumulate(macs.begin(), macs.end(), std::int64_t{0}));
  };
  for (const auto& [expansion, appended] : {std::pair{10., 0}, {20., 0}, {35., 2}}) {
    auto options = four_bits();
    options.split_expansion = expansion;
    const auto after = split(model, options);
    EXPECT_LE(sum(after) / sum(model), 1 + expansion / 100);
    EXPECT_EQ(after.parameters.at("depthwise.weight").size(0), kWidth + appended);
    EXPECT_EQ(models::get_if<models::Conv2d>(after.graph[after.graph.id_of("depthwise")])->groups,
              kWidth + appended);
    for (int i = 0; i < appended; ++i)
      EXPECT_TRUE(after.parameters.at("stem.weight")[kWidth + i].equal(
          model.parameters.at("stem.weight")[2]));
  }
}

TEST(SplitChannels, AStudentHasOneIntervalForAllChannels) {
  auto options = four_bits();
  options.split_expansion = 20;
  const auto student = test::quantized(equalize(split(wide_network(3), options), options), options);
  for (const char* relu6 : {"a", "b"}) {
    const auto& node = student.graph[student.graph.id_of(relu6)];
    EXPECT_TRUE(node.params.empty());
    EXPECT_EQ(models::get_if<models::Clip>(node)->lo, 0);
  }
}

TEST(SplitChannels, EqualizingScalesTheBoundsToo) {
  const auto options = four_bits();
  const auto model = split(wide_network(3), options);
  const auto before = logits(model), after = logits(equalize(model, options));
  EXPECT_LT((after - before).abs().max().item<double>(), 1e-5 * before.abs().max().item<double>());
}

// Two channels are dead, so the one that matters gets both places: three copies, a third of a step
// apart, whose mean on the grid has an error of a sixth of a step at most.
TEST(SplitChannels, CopiesOfTheSensitiveChannelTakeThePlacesOfDeadOnes) {
  auto model = network();
  const auto step = channel_ranges(parameter(model, "stem.bn.beta"),
                                   parameter(model, "stem.bn.gamma").abs(), 6, 4)[2]
                        .item<double>() /
                    15;
  auto after = split(model);
  const auto before = values_of(model, "a").select(1, 2), copies = values_of(after, "a");
  auto mean_on_grid = at::zeros_like(before);
  std::multiset<double> shifts;
  for (const int place : {1, 2, 4}) {
    const auto copy = copies.select(1, place);
    const auto shift = parameter(after, "stem.bn.beta")[place].item<double>() - 1.5;
    shifts.insert(std::round(shift / step * 1e4) / 1e4);
    mean_on_grid += (copy.div(step).round() * step - shift) / 3;
  }
  EXPECT_EQ(shifts, (std::multiset<double>{-0.3333, 0, 0.3333}));
  const auto inside = before.gt(step).logical_and(before.lt(4));
  ASSERT_GT(inside.sum().item<std::int64_t>(), 100);
  const auto error = (mean_on_grid - before).abs().masked_select(inside);
  EXPECT_LT(error.max().item<double>(), step / 6 + 1e-4);
  EXPECT_GT(error.max().item<double>(), step / 8);
  // The reader sees each copy with a third of the weight, the depthwise layer the same filter.
  const auto was = parameter(model, "project.weight").select(1, 2);
  for (const int place : {1, 2, 4}) {
    EXPECT_LT(
        (parameter(after, "project.weight").select(1, place) * 3 - was).abs().max().item<double>(),
        1e-4);
    EXPECT_TRUE(
        parameter(after, "depthwise.weight")[place].equal(parameter(model, "depthwise.weight")[2]));
  }
  for (const int place : {0, 3, 5})
    EXPECT_TRUE(
        parameter(after, "stem.weight")[place].equal(parameter(model, "stem.weight")[place]));
}

TEST(SplitChannels, LeavesAloneWhatHasNoDeadChannelOrEnoughBits) {
  auto alive = network();
  parameter(alive, "stem.bn.beta") += 3;
  EXPECT_FALSE(has_splittable_channels(alive, four_bits()));
  EXPECT_TRUE(at::equal(logits(split(alive)), logits(alive)));
  auto eight = four_bits();
  eight.activations.num_bits = 8;
  EXPECT_TRUE(at::equal(logits(split(network(), eight)), logits(network())));
}

TEST(SplitChannels, LeavesTheGivenModelAlone) {
  const auto model = network();
  const auto before = model.parameters.clone();
  split(model);
  for (const auto& name : before.names())
    EXPECT_TRUE(at::equal(before.at(name), model.parameters.at(name))) << name;
}

}  // namespace
}  // namespace zsq::quant::split_channels_test
