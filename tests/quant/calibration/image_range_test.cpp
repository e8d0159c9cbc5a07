// SPDX-License-Identifier: Apache-2.0
#include "quant/calibration/image_range.h"

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "quant/calibration/ranges.h"
#include "tests/support/network_builder.h"
#include "tests/support/quantized.h"

namespace zsq::quant {
namespace {

using models::Binary;
using models::BinaryKind;
using models::NodeId;
using test::NetworkBuilder;

NodeId constant(NetworkBuilder& net, const std::string& name, std::vector<double> channels) {
  net.model().parameters.set(
      name,
      at::tensor(channels, at::kFloat).view({1, static_cast<std::int64_t>(channels.size()), 1, 1}));
  return net.op(name, models::Parameter{}, {}, {{"value", name}});
}

// Pixels of 0 to 1 less the mean, by the deviation: of each channel, then the widest ends of all.
struct Normalised {
  NetworkBuilder net;
  NodeId centred, scaled;

  Normalised()
      : centred(net.op("centred", Binary{BinaryKind::sub},
                       {net.input(), constant(net, "mean", {0.5, 0.4, 0.2})})),
        scaled(net.op("scaled", Binary{BinaryKind::div},
                      {centred, constant(net, "deviation", {0.25, -0.2, 0.5})})) {}

  void expect(NodeId node, double lo, double hi) {
    PixelRanges ranges(net.model().graph, net.model().parameters, 0, 1);
    const auto range = ranges.range(node);
    ASSERT_TRUE(range);
    EXPECT_NEAR(range->first, lo, 1e-6);
    EXPECT_NEAR(range->second, hi, 1e-6);
  }
  void expect_nothing(NodeId node) {
    PixelRanges ranges(net.model().graph, net.model().parameters, 0, 1);
    EXPECT_FALSE(ranges.range(node));
  }
};

TEST(PixelRanges, FollowEachChannel) {
  Normalised of;
  of.expect(of.net.input(), 0, 1);
  of.expect(of.centred, -0.5, 0.8);
  of.expect(of.scaled, -3, 2);  // 0.4 / -0.2 and 0.6 / -0.2 in the second channel
}

TEST(PixelRanges, PassWhatMovesAndInterpolates) {
  Normalised of;
  const auto last = of.net.op("last", models::Slice{1, 2, 3}, {of.scaled});
  of.expect(last, -0.4, 1.6);
  const auto first = of.net.op("first", models::Slice{1, 0, 1}, {of.scaled});
  of.expect(of.net.op("both", models::Concat{1}, {last, first}), -2, 2);
  of.expect(of.net.op("large", models::Interpolate{{24, 24}}, {last}), -0.4, 1.6);
  of.expect(of.net.op("padded", models::Pad{{0, 0, 1, 1}, {0, 0, 1, 1}, 5}, {last}), -0.4, 5);
}

TEST(PixelRanges, KnowNothingOfOtherNodes) {
  Normalised of;
  of.expect_nothing(of.net.op("square", models::Mul{}, {of.scaled, of.scaled}));
  of.expect_nothing(of.net.op("inverse", Binary{BinaryKind::div},
                              {constant(of.net, "one", {1, 1, 1}), of.scaled}));
  of.expect_nothing(of.net.conv("conv", of.scaled, 3, 4));
  of.expect_nothing(of.net.model().graph.id_of("mean"));
  auto cubic = models::Interpolate{{24, 24}};
  cubic.mode = models::InterpolationMode::cubic;  // overshoots
  of.expect_nothing(of.net.op("cubic", cubic, {of.scaled}));
}

// All of the 256 codes of the first layer's input are for values that it can have.
TEST(PixelRanges, AreTheGridsOfNetworksThatNormalise) {
  Normalised of;
  auto x = of.net.conv_bn_relu("a", of.scaled, 3, 4);
  of.net.model().graph.output =
      of.net.linear("fc", of.net.op("pool", models::GlobalAvgPool{false}, {x}), 4, 2);
  for (const auto rule : {ActivationRange::bn_statistics, ActivationRange::mse}) {
    QuantOptions options;
    options.activations.range = rule;
    options.activations.num_bits = 4;
    options.image_lo = 0;
    options.image_hi = 1;
    auto student = test::quantized(of.net.model(), options);
    calibrate(student, [] { return test::normal({16, 3, 12, 12}, 1); });
    EXPECT_FLOAT_EQ(student.parameters.at("scaled.quantizer.scale").item<float>(), 5.0F / 255);
  }
}

}  // namespace
}  // namespace zsq::quant
