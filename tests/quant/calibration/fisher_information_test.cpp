// SPDX-License-Identifier: Apache-2.0
#include "quant/calibration/fisher_information.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/softmax.h>
#include <gtest/gtest.h>

#include "models/execute.h"
#include "tests/support/network_builder.h"

namespace zsq::quant {
namespace {

// With logits W mean(x) over P places: sum_y p_y (W_yc - sum_k p_k W_kc)^2 / P.
TEST(FisherInformation, OfWhatALinearClassifierPools) {
  test::NetworkBuilder net({3, 4, 5});
  const auto x = net.relu("x", net.conv("conv", net.input(), 3, 6));
  const auto y =
      net.op("flatten", models::Flatten{}, {net.op("pool", models::GlobalAvgPool{}, {x})});
  const auto model = net.finish(net.linear("fc", y, 6, 4), 4);

  const auto image = test::normal({1, 3, 4, 5}, 2);
  const auto p = models::execute(model.graph, model.parameters, image).softmax(1);  // [1, classes]
  const auto weight = model.parameters.at("fc.weight");                             // [classes, C]
  const auto expected = p.mm((weight - p.mm(weight)).square()).flatten() / (4 * 5);

  const auto found = fisher_information(model, {x}, image.expand({4000, 3, 4, 5}), 500, 1);
  ASSERT_EQ(found.size(), 1U);
  ASSERT_EQ(found[0].sizes(), (at::IntArrayRef{6}));
  for (int c = 0; c < 6; ++c)  // draws of y differ by a few per cent
    EXPECT_NEAR(found[0][c].item<double>() / expected[c].item<double>(), 1, 0.1) << c;
}

}  // namespace
}  // namespace zsq::quant
