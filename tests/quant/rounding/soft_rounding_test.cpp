// SPDX-License-Identifier: Apache-2.0
#include "quant/rounding/soft_rounding.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/support/network_builder.h"

namespace zsq::quant {
namespace {

// Three bits, codes -4..3; two output channels.
struct Rounded {
  explicit Rounded(at::Tensor w) : weight(std::move(w)) {
    parameters.set(quantizer.scale_name(), at::tensor({0.5f, 0.1f}));
    parameters.set(quantizer.zero_point_name(), at::tensor({1.0f, -1.0f}));
    soft.emplace(quantizer, weight, parameters);
  }
  at::Tensor codes(const at::Tensor& latent) const {
    const auto [scale, zero_point] = quantizer.grid(latent, parameters);
    return cuda_kernels::quantize(latent, scale, zero_point, -4, 3);
  }
  WeightQuantizer quantizer{"w", weight_spec(3, false, Mode::deploy), true, false};
  at::Tensor weight;
  models::ParameterStore parameters;
  std::optional<SoftRounding> soft;
};

TEST(SoftRounding, StartsAtTheWeightWithinTheRange) {
  // In steps: -5 .. 2 from the zero point in the first channel, -3 .. 4 in the second.
  const auto weight =
      at::tensor({0.6f, -1.3f, 9.0f, -9.0f, 0.05f, 0.1f, 0.39f, -0.77f}).view({2, 4});
  const Rounded r(weight);
  const auto expected =
      at::tensor({0.6f, -1.3f, 1.0f, -2.5f, 0.05f, 0.1f, 0.39f, -0.3f}).view({2, 4});
  const auto got = r.soft->forward({}, r.parameters);
  EXPECT_LT(got.sub(expected).abs().max().item<float>(), 1e-5) << got;
}

TEST(SoftRounding, DecidesForANeighbourAndNearestRoundingKeepsIt) {
  const auto weight =
      at::tensor({0.6f, 0.6f, 0.9f, -1.3f, 0.05f, 0.12f, -0.77f, 9.0f}).view({2, 4});
  const Rounded r(weight);
  {
    const at::NoGradGuard no_grad;
    r.soft->logits().copy_(at::tensor({-9.f, 9.f, -.1f, .1f, 3.f, -3.f, 9.f, 9.f}).view({2, 4}));
  }
  const auto latent = r.soft->decided(r.parameters);
  // floor: 1 1 1 -3 | 0 1 -8 90; up where the logit is positive; then the range.
  const auto expected = at::tensor({2, 3, 2, -1, 0, 0, -4, 3}, at::kInt).view({2, 4});
  EXPECT_TRUE(r.codes(latent).equal(expected)) << r.codes(latent);
  // The centre of the cell: fake-quantization leaves it alone, bit for bit.
  EXPECT_TRUE(r.quantizer.forward({latent}, r.parameters).equal(latent));
}

TEST(SoftRounding, UndecidedWeightsCost) {
  const Rounded r(at::tensor({0.25f, 0.5f, 0.0f, 1.25f, 0.025f, 0.0f, 0.1f, 0.2f}).view({2, 4}));
  // Rests 1/2, 0, 0, 1/2, 1/4, 0, 0, 0.
  EXPECT_NEAR(r.soft->rounding_regularizer(2).item<double>(), (1 + 1 + 0.75) / 8, 1e-5);
  EXPECT_NEAR(r.soft->rounding_regularizer(20).item<double>(), (3 - std::pow(0.5, 20)) / 8, 1e-5);
}

// To the logits and to w.scale, of a mixture of the weights [2, 3, 1, 2].
void expect_gradients_of_finite_differences(const SoftRounding& soft,
                                            const models::ParameterStore& parameters) {
  const auto scale = parameters.at("w.scale").requires_grad_(true);
  const auto mix = test::normal({2, 3, 1, 2}, 2);
  const auto loss = [&] {
    return soft.forward({}, parameters).mul(mix).sum().add(soft.rounding_regularizer(3));
  };
  const auto gradients = torch::autograd::grad({loss()}, {soft.logits(), scale});
  const at::NoGradGuard no_grad;
  const auto check = [&](const at::Tensor& variable, const at::Tensor& gradient) {
    auto flat = variable.view(-1);
    for (std::int64_t i = 0; i < flat.numel(); ++i) {
      const float at = flat[i].item<float>(), h = 1e-3f;
      flat[i].fill_(at + h);
      const double up = loss().item<double>();
      flat[i].fill_(at - h);
      const double down = loss().item<double>();
      flat[i].fill_(at);
      EXPECT_NEAR(gradient.reshape(-1)[i].item<double>(), (up - down) / (2 * h), 2e-3) << i;
    }
  };
  check(soft.logits(), gradients[0]);
  check(scale, gradients[1]);
}

TEST(SoftRounding, GradientsAreThoseOfFiniteDifferences) {
  const Rounded r(test::normal({2, 3, 1, 2}, 1, 0.2f));
  expect_gradients_of_finite_differences(*r.soft, r.parameters);
}

// Levels -4, -1, 0, 3 times 0.5, and -3, 0, 1, 1 times 0.1.
struct OnLevels {
  explicit OnLevels(const at::Tensor& weight) {
    parameters.set(quantizer.scale_name(), at::tensor({0.5f, 0.1f}));
    parameters.set(quantizer.zero_point_name(), at::zeros({2}));
    parameters.set(quantizer.levels_name(),
                   at::tensor({-4.f, -1.f, 0.f, 3.f, -3.f, 0.f, 1.f, 1.f}).view({2, 4}));
    soft.emplace(quantizer, weight, parameters);
  }
  WeightQuantizer quantizer{"w", level_table_spec(2, Mode::deploy), true, false};
  models::ParameterStore parameters;
  std::optional<SoftRounding> soft;
};

TEST(SoftRounding, OnLevelsStartsAtTheWeightWithinTheRange) {
  const auto weight = at::tensor({1.2f, -1.9f, 2.0f, -9.f, -0.1f, 0.04f, 0.1f, 0.3f}).view({2, 4});
  const OnLevels r(weight);
  const auto expected =
      at::tensor({1.2f, -1.9f, 1.5f, -2.f, -0.1f, 0.04f, 0.1f, 0.1f}).view({2, 4});
  const auto got = r.soft->forward({}, r.parameters);
  EXPECT_LT(got.sub(expected).abs().max().item<float>(), 1e-5) << got;
  EXPECT_NEAR(r.soft->rounding_regularizer(1).item<double>(), (0.4 + 0.4 / 3 + 2 / 3. + 0.8) / 8,
              1e-5);
}

TEST(SoftRounding, OnLevelsDecidesForANeighbourAndTheQuantizerKeepsIt) {
  const auto weight = at::tensor({1.2f, 0.f, -1.9f, -0.6f, -0.1f, 0.04f, 0.05f, 9.f}).view({2, 4});
  const OnLevels r(weight);
  {
    const at::NoGradGuard no_grad;
    r.soft->logits().copy_(at::tensor({-9.f, 9.f, .1f, -.1f, 3.f, 3.f, -3.f, 9.f}).view({2, 4}));
  }
  const auto latent = r.soft->decided(r.parameters);
  const auto expected = at::tensor({0.f, 1.5f, -.5f, -2.f, 0.f, .1f, 0.f, .1f}).view({2, 4});
  EXPECT_LT(latent.sub(expected).abs().max().item<float>(), 1e-6) << latent;
  EXPECT_TRUE(r.quantizer.forward({latent}, r.parameters).equal(latent));
}

TEST(SoftRounding, OnLevelsGradientsAreThoseOfFiniteDifferences) {
  const auto weight = test::normal({2, 3, 1, 2}, 1, 0.2f);
  weight[1].mul_(0.25).clamp_max_(0.09);  // all between levels: the ends are no smooth points
  const OnLevels r(weight);
  expect_gradients_of_finite_differences(*r.soft, r.parameters);
}

// Levels one apart are the uniform grid; weights beyond its ends included.
TEST(SoftRounding, OnEvenLevelsIsThatOnTheUniformGrid) {
  const Rounded uniform(test::normal({2, 30}, 3, 0.8f));
  const WeightQuantizer quantizer{"t", level_table_spec(3, Mode::deploy), true, false};
  models::ParameterStore parameters;
  parameters.set("t.scale", uniform.parameters.at("w.scale"));
  parameters.set("t.zero_point", at::zeros({2}));
  parameters.set(
      "t.levels",
      at::arange(-4, 4, at::kFloat).sub(uniform.parameters.at("w.zero_point").unsqueeze(1)));
  const SoftRounding table(quantizer, uniform.weight, parameters);
  const auto scale = parameters.at("t.scale").requires_grad_(true);
  const auto gradients = [&](const SoftRounding& soft, const models::ParameterStore& store) {
    return torch::autograd::grad({soft.forward({}, store).pow(3).sum()}, {soft.logits(), scale});
  };
  const auto a = gradients(*uniform.soft, uniform.parameters), b = gradients(table, parameters);
  EXPECT_TRUE(table.forward({}, parameters)
                  .allclose(uniform.soft->forward({}, uniform.parameters), 1e-6, 1e-7));
  EXPECT_TRUE(a[0].allclose(b[0], 1e-6, 1e-7));
  EXPECT_TRUE(a[1].allclose(b[1], 1e-6, 1e-7));
  EXPECT_TRUE(table.decided(parameters).equal(uniform.soft->decided(uniform.parameters)));
}

}  // namespace
}  // namespace zsq::quant
