// SPDX-License-Identifier: Apache-2.0
#include "models/classifier.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/network_builder.h"
#include "tests/support/networks.h"

namespace zsq::models {
namespace {

TEST(ClassifierWeight, IsThatOfTheLastLinearLayer) {
  Model model = test::residual_network();
  model.classes = 10;
  const auto weight = classifier_weight(model);
  EXPECT_TRUE(weight.equal(model.parameters.at("fc.weight")));
}

TEST(ClassifierWeight, MayBeAPointwiseConvolution) {
  test::NetworkBuilder net;
  auto x = net.conv_bn_relu("a", net.input(), 3, 8);
  x = net.op("pool", GlobalAvgPool{}, {x});
  x = net.conv("classifier", x, 8, 10, 1);
  const Model model = net.finish(net.op("flatten", Flatten{}, {x}), 10);
  EXPECT_TRUE(classifier_weight(model).equal(model.parameters.at("classifier.weight").flatten(1)));
}

TEST(ClassifierWeight, ANetworkThatEndsInAnotherLayerIsRefused) {
  test::NetworkBuilder net;
  auto x = net.conv_bn_relu("a", net.input(), 3, 8);
  x = net.op("pool", GlobalAvgPool{}, {x});
  const Model model = net.finish(net.op("flatten", Flatten{}, {x}), 8);
  try {
    classifier_weight(model);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported_model);
  }
}

}  // namespace
}  // namespace zsq::models
