// SPDX-License-Identifier: Apache-2.0
#include "pipeline/runtimes/reference.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <limits>

namespace zsq::pipeline {
namespace {

using models::OutputFunction;

models::Graph graph_with(OutputFunction function) {
  models::Graph graph;
  graph.signature.function = function;
  return graph;
}

TEST(Reference, LastFunctionsAreUndone) {
  const at::Tensor z = at::tensor({1.5f, -2.0f, 30.0f, 0.25f}).reshape({2, 2});
  const auto undone = [](OutputFunction function, const at::Tensor& y) {
    return before_last_function(graph_with(function), y);
  };
  EXPECT_TRUE(undone(OutputFunction::none, z).equal(z));
  EXPECT_TRUE(undone(OutputFunction::softmax, at::softmax(z, 1))
                  .allclose(at::log_softmax(z, 1).clamp_min(-27), 1e-4, 1e-4));
  EXPECT_TRUE(undone(OutputFunction::sigmoid, at::sigmoid(z)).allclose(z.clamp(-8, 8), 1e-3, 1e-3));
  EXPECT_TRUE(undone(OutputFunction::softmax, at::tensor({1.0f, 0.0f}).reshape({1, 2}))
                  .equal(at::tensor({0.0f, -27.0f}).reshape({1, 2})));
}

TEST(Reference, DifferencesCountDecisionsAndSizes) {
  const at::Tensor a = at::tensor({1.0f, 2.0f, 4.0f, 3.0f}).reshape({2, 2});
  const at::Tensor b = at::tensor({1.0f, 2.0f, 2.0f, 3.0f}).reshape({2, 2});
  const auto off = difference_of(graph_with(OutputFunction::none), a, b);
  EXPECT_EQ(off.agreement, 0.5);
  EXPECT_EQ(off.largest, 2);
  EXPECT_EQ(off.rms, 1);
}

TEST(Reference, ExplainsAStepAndWhatRoundingMakes) {
  Reference reference;
  reference.step = 0.1;
  reference.magnitude = 10;
  const auto explains = [&](double largest, double rms) {
    return reference.explains({1, largest, rms});
  };
  EXPECT_TRUE(explains(0.1, 0.05));
  EXPECT_FALSE(explains(0.2, 0.01));
  EXPECT_FALSE(
      explains(std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()));
  reference.rounding = {1, 0.5, 0.02};
  EXPECT_TRUE(explains(0.5, 0.05));
  EXPECT_FALSE(explains(0.5, 0.07));
  reference = {};
  reference.magnitude = 10;
  EXPECT_TRUE(explains(1e-4, 1e-5));
  EXPECT_FALSE(explains(2e-4, 1e-5));
}

}  // namespace
}  // namespace zsq::pipeline
