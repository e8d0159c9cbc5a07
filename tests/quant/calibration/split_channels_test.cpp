// SPDX-License-Identifier: Apache-2.0
#include "quant/calibration/split_channels.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "models/execute.h"
#include "quant/data_free/channel_ranges.h"
#include "tests/support/network_builder.h"

namespace zsq::quant {
namespace {

using models::NodeId;

constexpr std::int64_t kWidth = 6;

at::Tensor& parameter(models::Model& model, const std::string& name) {
  return model.parameters.at(name);
}

// stem -> depthwise -> project; channels 1 and 4 end below 0, whatever the image, and values stay
// away from 6. Channel 2 alone matters.
models::Model network() {
  test::NetworkBuilder net({3, 8, 8}, test::varied_parameters(5));
  NodeId x = net.relu6("a", net.conv_bn("stem", net.input(), 3, kWidth));
  x = net.relu6("b", net.conv_bn("depthwise", x, kWidth, kWidth, 3, kWidth));
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

TEST(SplitChannels, TheFunctionStays) {
  const auto model = network();
  ASSERT_TRUE(has_splittable_channels(model));
  const auto before = logits(model), after = logits(split(model));
  EXPECT_LT((after - before).abs().max().item<double>(), 1e-4 * before.abs().max().item<double>());
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
  EXPECT_FALSE(has_splittable_channels(alive));
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
}  // namespace zsq::quant
