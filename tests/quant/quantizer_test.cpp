// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "quant/qdq_chain.h"
#include "quant/student.h"
#include "tests/support/network_builder.h"
#include "tests/support/quantized.h"

namespace zsq::quant {
namespace {

TEST(Spec, CodesOfEachWidth) {
  const auto weights = weight_spec(4, true, Mode::paper);
  EXPECT_EQ(weights.qmin, -8);
  EXPECT_EQ(weights.qmax, 7);
  EXPECT_TRUE(weights.symmetric);
  EXPECT_EQ(weights.surrogate, cuda_kernels::Surrogate::pass_through);
  // So that no code is without its negative in int8.
  EXPECT_EQ(weight_spec(8, true, Mode::deploy).qmin, -127);
  EXPECT_EQ(weight_spec(8, false, Mode::deploy).qmin, -128);
  const auto activations = activation_spec(3, Mode::deploy);
  EXPECT_EQ(activations.qmin, 0);
  EXPECT_EQ(activations.qmax, 7);
  EXPECT_EQ(activations.surrogate, cuda_kernels::Surrogate::clipped);
}

TEST(ActivationQuantizer, PassesOnUntilItHasAScale) {
  const ActivationQuantizer op("q", activation_spec(2, Mode::deploy));
  const auto x = at::tensor({-1.0, 0.0, 0.4, 0.6, 9.0}, at::kFloat);
  models::ParameterStore parameters;
  EXPECT_TRUE(at::equal(op.forward({x}, parameters), x));
  parameters.set("q.scale", at::tensor(1.0f).reshape({}));
  parameters.set("q.zero_point", at::tensor(0.0f).reshape({}));
  EXPECT_TRUE(
      at::equal(op.forward({x}, parameters), at::tensor({0.0, 0.0, 0.0, 1.0, 3.0}, at::kFloat)));
}

// Two channels: [-8, 7] in steps of 1, and ten times that. Doubled, the range must follow.
TEST(WeightQuantizer, RangeEveryStepFollowsTheWeight) {
  const auto w = at::tensor({-8.0, 0.4, 7.0, -80.0, 14.0, 70.0}, at::kFloat).reshape({2, 3});
  const auto expected = at::tensor({-8.0, 0.0, 7.0, -80.0, 10.0, 70.0}, at::kFloat).reshape({2, 3});
  const WeightQuantizer op("q", weight_spec(4, false, Mode::paper), true, true);
  const models::ParameterStore none;
  EXPECT_TRUE(at::equal(op.forward({w}, none), expected));
  EXPECT_TRUE(at::equal(op.forward({w.mul(2)}, none), expected.mul(2)));
}

TEST(WeightQuantizer, StoredGridStays) {
  const auto w = at::tensor({-8.0, 0.4, 7.0}, at::kFloat).reshape({1, 3});
  const WeightQuantizer op("q", weight_spec(4, false, Mode::deploy), false, false);
  models::ParameterStore parameters;
  parameters.set("q.scale", at::tensor(1.0f).reshape({}));
  parameters.set("q.zero_point", at::tensor(0.0f).reshape({}));
  const auto expected = at::tensor({-8.0, 1.0, 7.0}, at::kFloat).reshape({1, 3});
  EXPECT_TRUE(at::equal(op.forward({w.mul(2)}, parameters), expected));
}

TEST(RefreshWeightGrids, WritesWhatForwardUses) {
  for (const bool every_step : {true, false}) {
    QuantOptions options;
    options.weights.range_every_step = every_step;
    auto student = test::quantized(test::residual_network(), options);
    const auto before = student.parameters.at("a.weight_quantizer.scale").clone();
    student.parameters.at("a.weight").mul_(2);
    refresh_weight_grids(student);
    const auto after = student.parameters.at("a.weight_quantizer.scale");
    EXPECT_TRUE(at::equal(after, every_step ? before.mul(2) : before));
  }
}

TEST(QuantizeChainFactory, KeepsCodesAndClamps) {
  models::ParameterStore parameters;
  // ReLU6 folded into the bounds of a 4-bit grid with zero point 3.
  const auto op = quantize_chain_factory()("conv.q", {0.5f, 3, 3, 15}, parameters);
  EXPECT_EQ(op->kind(), "activation_quantizer");
  EXPECT_EQ(parameters.names(), (std::vector<std::string>{"conv.q.scale", "conv.q.zero_point"}));
  const auto x = at::tensor({-2.0, 0.0, 0.7, 5.9, 6.1, 99.0}, at::kFloat);
  EXPECT_TRUE(at::equal(op->forward({x}, parameters),
                        at::tensor({0.0, 0.0, 0.5, 6.0, 6.0, 6.0}, at::kFloat)));
  EXPECT_EQ(dynamic_cast<const ActivationQuantizer&>(*op).spec().num_bits, 4);
}

}  // namespace
}  // namespace zsq::quant
