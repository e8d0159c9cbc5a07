// SPDX-License-Identifier: Apache-2.0
#include "quant/number_format.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "quant/calibration/ranges.h"
#include "quant/rounding/squant.h"
#include "tests/support/error_message.h"
#include "tests/support/network_builder.h"

namespace zsq::quant {
namespace {

TEST(NumberFormat, EachMethodThatNeedsUniformLevelsRefusesByName) {
  auto spec = weight_spec(4, true, Mode::deploy);
  spec.format = NumberFormat::level_table;
  const auto w = test::normal({2, 3}, 1);
  const cuda_kernels::Grid grid{at::full({2}, 0.1), at::zeros({2})};
  const auto refusal = [](const std::function<void()>& action) {
    return test::error_message(ErrorCode::unsupported_model, action);
  };
  const auto expect_named = [&](const std::string& name, const std::function<void()>& action) {
    EXPECT_EQ(refusal(action).rfind(name, 0), 0U) << refusal(action);
  };
  expect_named("SQuant", [&] { squant(w, grid, spec, false); });
  expect_named("the range rule mse", [&] { weight_grid(w, spec, true, WeightRange::mse); });
}

}  // namespace
}  // namespace zsq::quant
