// SPDX-License-Identifier: Apache-2.0
// Each function of the table against its formula, written with <cmath> in double precision.
#include "models/elementwise.h"

#include <ATen/ops/linspace.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>

#include "models/graph.h"

namespace zsq::models {
namespace {

double softplus(double x) { return std::log1p(std::exp(x)); }

double by_hand(Function function, double x, double a, double b) {
  switch (function) {
    case Function::elu:
      return x > 0 ? x : a * std::expm1(x);
    case Function::celu:
      return x > 0 ? x : a * std::expm1(x / a);
    case Function::selu:
      return b * (x > 0 ? x : a * std::expm1(x));
    case Function::tanh:
      return std::tanh(x);
    case Function::softplus:
      return softplus(x);
    case Function::mish:
      return x * std::tanh(softplus(x));
    case Function::gelu_tanh:
      return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Function::softsign:
      return x / (1 + std::abs(x));
    case Function::thresholded_relu:
      return x > a ? x : 0;
    case Function::erf:
      return std::erf(x);
    case Function::exp:
      return std::exp(x);
    case Function::log:
      return std::log(x);
    case Function::sqrt:
      return std::sqrt(x);
    case Function::reciprocal:
      return 1 / x;
    case Function::abs:
      return std::abs(x);
    case Function::neg:
      return -x;
    case Function::power:
      return std::pow(x, a);
    case Function::sin:
      return std::sin(x);
    case Function::cos:
      return std::cos(x);
    case Function::floor:
      return std::floor(x);
    case Function::ceil:
      return std::ceil(x);
    case Function::round:
      return std::nearbyint(x);  // half to even
    case Function::sign:
      return x > 0 ? 1 : x < 0 ? -1 : 0;
  }
  return NAN;
}

TEST(Elementwise, EveryFunctionIsItsFormula) {
  for (const auto& row : functions()) {
    const Elementwise op{row.function, 1.25, 1.05};
    const bool positive = row.function == Function::log || row.function == Function::sqrt ||
                          row.function == Function::power;
    const auto x = at::linspace(positive ? 0.25 : -6, 6, 97);
    const auto y = apply(op, x);
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      const double at = x[i].item<double>();
      if (row.function == Function::reciprocal && at == 0) continue;
      const double expected = by_hand(row.function, at, op.alpha, op.beta);
      EXPECT_NEAR(y[i].item<double>(), expected, 1e-5 * (1 + std::abs(expected)))
          << row.name << " of " << at;
    }
  }
}

TEST(Elementwise, RoundTakesHalvesToTheEvenNumber) {
  const auto y = apply({Function::round}, at::tensor({-2.5, -1.5, -0.5, 0.5, 1.5, 2.5}));
  EXPECT_TRUE(y.equal(at::tensor({-2.0, -2.0, 0.0, 0.0, 2.0, 2.0}))) << y;
}

TEST(Elementwise, AFunctionPrintsItsOwnName) {
  EXPECT_EQ(op_name(Elementwise{Function::elu}), "Elu");
  EXPECT_EQ(op_name(Elementwise{Function::sign}), "Sign");
}

}  // namespace
}  // namespace zsq::models
