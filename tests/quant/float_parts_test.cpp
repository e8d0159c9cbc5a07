// SPDX-License-Identifier: Apache-2.0
// A normalisation that a file writes as its parts has no code inside.
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "quant/calibration/ranges.h"
#include "quant/student.h"
#include "tests/support/network_builder.h"
#include "tests/support/quantized.h"

namespace zsq::quant::float_parts_test {
namespace {

using models::NodeId;

enum class Over { channels, places };

// gamma (x - mean) / sqrt(variance + eps) + beta of a convolution's output.
models::Model normalized_in_parts(Over over = Over::channels) {
  test::NetworkBuilder net;
  const auto constant = [&](const std::string& name, const at::Tensor& value) {
    net.model().parameters.set(name, value);
    return net.op(name, models::Parameter{}, {}, {{"value", name}});
  };
  const auto mean = [&](const std::string& name, NodeId x) {
    if (over == Over::places) return net.op(name, models::GlobalAvgPool{}, {x});
    return net.op(name, models::Reduce{models::ReduceKind::mean, {1}, true}, {x});
  };
  const NodeId x = net.conv_bn("stem", net.input(), 3, 8);
  const NodeId centred =
      net.op("centred", models::Binary{models::BinaryKind::sub}, {x, mean("mean", x)});
  const NodeId squares =
      net.op("squares", models::Elementwise{models::Function::power, 2}, {centred});
  const NodeId sum =
      net.op("sum", models::Add{},
             {mean("variance", squares), constant("eps", at::full({1, 1, 1}, 1e-5))});
  const NodeId length = net.op("length", models::Elementwise{models::Function::sqrt}, {sum});
  NodeId y = net.op("quotient", models::Binary{models::BinaryKind::div}, {centred, length});
  y = net.op("scaled", models::Mul{}, {y, constant("gamma", test::normal({8, 1, 1}, 3))});
  y = net.op("shifted", models::Add{}, {y, constant("beta", test::normal({8, 1, 1}, 4))});
  y = net.conv_bn_relu("head", y, 8, 8, 1);
  y = net.op("flatten", models::Flatten{}, {net.op("pool", models::GlobalAvgPool{}, {y})});
  return net.finish(net.linear("fc", y, 8, 10));
}

TEST(FloatParts, OfANormalisationHaveNoCodes) {
  for (const Over over : {Over::channels, Over::places}) {
    const auto student = test::quantized(normalized_in_parts(over), {});
    std::set<std::string> quantized;
    for (const NodeId id : activation_sites(student.graph))
      quantized.insert(student.graph[student.graph[id].inputs[0]].name);
    EXPECT_EQ(quantized, (std::set<std::string>{"input", "stem.bn", "shifted", "head.relu", "pool",
                                                "flatten"}));
  }
}

// |x| / sqrt(mean x^2) <= sqrt(8): gamma and beta are within 4.
TEST(FloatParts, OfANormalisationHaveTheRangeOfOne) {
  QuantOptions options;
  options.activations.range = ActivationRange::bn_statistics;
  auto student = test::quantized(normalized_in_parts(), options);
  calibrate(student, test::normal({8, 3, 12, 12}, 5), 8);
  for (const NodeId id : activation_sites(student.graph)) {
    if (student.graph[student.graph[id].inputs[0]].name != "shifted") continue;
    const auto* op = activation_quantizer(student.graph[id]);
    const auto width = student.parameters.at(op->scale_name()).item<double>() *
                       static_cast<double>(op->spec().qmax - op->spec().qmin);
    EXPECT_LT(width, 2 * (4 * std::sqrt(8.0) + 4));
    EXPECT_GT(width, 2);
  }
}

}  // namespace
}  // namespace zsq::quant::float_parts_test
