// SPDX-License-Identifier: Apache-2.0
#include "quant/data_free/entry_statistics.h"

#include <gtest/gtest.h>

#include "tests/support/network_builder.h"

namespace zsq::quant::entry_statistics_test {
namespace {

// Mean and deviation of each channel.
std::pair<at::Tensor, at::Tensor> moments(const at::Tensor& x) {
  const auto rows = x.transpose(0, 1).flatten(1).to(at::kDouble);
  return {rows.mean(1), rows.std(1, /*unbiased=*/false)};
}

// Three blocks: the second one reads a BatchNorm's output, the third one that of a ReLU.
models::Model teacher() {
  test::NetworkBuilder net({3, 8, 8});
  auto x = net.conv_bn("a", net.input(), 3, 4);
  x = net.conv_bn_relu("b", x, 4, 4);
  x = net.conv_bn_relu("c", x, 4, 4);
  x = net.op("pool", models::GlobalAvgPool{}, {x});
  return net.finish(net.op("flatten", models::Flatten{}, {x}));
}

struct Entries {
  models::Model model = teacher();
  std::vector<models::Block> blocks = models::find_blocks(model.graph, model.parameters);
  EntryStatistics statistics{model, blocks};
  at::Tensor param(const char* name) const { return model.parameters.at(name).to(at::kDouble); }
};

// The output of a BatchNorm layer has mean beta and deviation |gamma|.
TEST(EntryStatistics, OfABatchNormAreThoseOfItsParameters) {
  const Entries e;
  ASSERT_EQ(e.blocks.size(), 3U);
  const auto start = test::normal({70, 4, 5, 5}, 1, 2) + 1.5,
             other = test::normal({70, 4, 5, 5}, 2);
  const auto float_values = start.clone(), student_values = other.clone();
  e.statistics.impose(e.blocks[1].entry, float_values.split(32), student_values.split(40));
  const auto [mean, deviation] = moments(float_values);
  EXPECT_LT(mean.sub(e.param("a.bn.beta")).abs().max().item<double>(), 0.02);
  EXPECT_LT(deviation.sub(e.param("a.bn.gamma").abs()).abs().max().item<double>(), 0.02);
  // One map for both: what it makes of a value does not depend on where that stands.
  for (std::int64_t c = 0; c < 4; ++c) {
    const auto at = [&](const at::Tensor& x, std::int64_t i) {
      return x.select(1, c).flatten()[i].item<double>();
    };
    const double a = (at(float_values, 0) - at(float_values, 1)) / (at(start, 0) - at(start, 1));
    const double b = at(float_values, 0) - a * at(start, 0);
    EXPECT_NEAR(at(student_values, 9), a * at(other, 9) + b, 1e-4);
  }
}

TEST(EntryStatistics, BehindAReluStayWithinItsRange) {
  const Entries e;
  const auto values = test::normal({64, 4, 5, 5}, 3, 2).clamp_min(0), copy = values.clone();
  e.statistics.impose(e.blocks[2].entry, {values}, {copy});
  EXPECT_EQ(values.min().item<float>(), 0);
  EXPECT_TRUE(values.equal(copy));
  // E max(0, x), x normal: beta Phi(beta / |gamma|) + |gamma| phi(beta / |gamma|). The clamp moves
  // the mean a little.
  const auto beta = e.param("b.bn.beta"), gamma = e.param("b.bn.gamma").abs(), z = beta / gamma;
  const auto expected = beta * 0.5 * (1 + (z / std::sqrt(2.0)).erf()) +
                        gamma * (-0.5 * z.square()).exp() / std::sqrt(2 * std::acos(-1.0));
  EXPECT_LT(moments(values).first.sub(expected).abs().div(expected).max().item<double>(), 0.25);
}

TEST(EntryStatistics, ConstantChannelsAndTheImageStay) {
  const Entries e;
  const auto image = test::normal({8, 3, 8, 8}, 4), before = image.clone();
  e.statistics.impose(e.blocks[0].entry, {image}, {image});
  EXPECT_TRUE(image.equal(before));
  const auto values = test::normal({8, 4, 5, 5}, 5);
  values.select(1, 2).fill_(7);
  e.statistics.impose(e.blocks[1].entry, {values}, {values.clone()});
  EXPECT_TRUE(values.select(1, 2).eq(7).all().item<bool>());
}

// Images that make too little of a channel make it no more than eight times as large.
TEST(EntryStatistics, FactorsAreBounded) {
  const Entries e;
  const auto values = test::normal({64, 4, 5, 5}, 6, 1e-4F), copy = values.clone();
  e.statistics.impose(e.blocks[1].entry, {values}, {copy});
  EXPECT_LT(moments(values).second.max().item<double>(), 8.5e-4);
}

}  // namespace
}  // namespace zsq::quant::entry_statistics_test
