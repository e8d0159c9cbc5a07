// SPDX-License-Identifier: Apache-2.0
// What a layer without BatchNorm gives a function may reach much further than independent inputs
// would: here all channels of an image are alike. With 8 bits the function must still reach, on
// such images, what it reaches in float on the side of 0 that the mean is far from.
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "models/elementwise.h"
#include "models/execute.h"
#include "quant/calibration/ranges.h"
#include "quant/student.h"
#include "tests/support/network_builder.h"
#include "tests/support/quantized.h"

namespace zsq::quant::function_ranges_test {
namespace {

using models::Elementwise;
using models::Function;
using models::NodeId;

struct Case {
  const char* name;
  models::Op op;
  bool gate = false;  // times its input
};

const Case kCases[]{{"sigmoid", models::Sigmoid{}},
                    {"hard_sigmoid", models::HardSigmoid{}},
                    {"hard_swish", models::HardSwish{}},
                    {"silu", models::Sigmoid{}, true},
                    {"relu", models::Clip{}},
                    {"relu6", models::Clip{0, 6}},
                    {"leaky_relu", models::LeakyRelu{0.1}},
                    {"gelu", models::Gelu{}},
                    {"gelu_tanh", Elementwise{Function::gelu_tanh}},
                    {"elu", Elementwise{Function::elu}},
                    {"tanh", Elementwise{Function::tanh}},
                    {"softplus", Elementwise{Function::softplus}},
                    {"mish", Elementwise{Function::mish}},
                    {"softsign", Elementwise{Function::softsign}}};

constexpr std::int64_t kChannels = 8;

// The layer's output has this mean, and on images with equal channels a deviation of 3: with
// independent ones it would be 1.06.
models::Model network(const Case& one, double mean) {
  test::NetworkBuilder net({kChannels, 4, 4}, test::varied_parameters(1));
  const NodeId x = net.conv("layer", net.input(), kChannels, kChannels, 1, 1, true);
  net.at("layer.weight").fill_(3.0 / kChannels);
  net.at("layer.bias").fill_(mean);
  NodeId f = net.op("f", one.op, {x});
  if (one.gate) f = net.op("gated", models::Mul{}, {x, f});
  return net.finish(net.conv("reader", f, kChannels, 4));
}

// What the reader gets: [least, largest].
std::pair<double, double> reach(const models::Graph& graph, const models::ParameterStore& store,
                                const at::Tensor& images) {
  models::Taps taps{{graph[graph.id_of("reader")].inputs[0]}, {}};
  models::execute(graph, store, images, &taps);
  return {taps.values[0].min().item<double>(), taps.values[0].max().item<double>()};
}

void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

class FunctionRanges : public testing::TestWithParam<Case> {};

TEST_P(FunctionRanges, ReachBothSidesOfZero) {
  const auto images = test::normal({64, 1, 4, 4}, 5).expand({64, kChannels, 4, 4}).contiguous();
  for (const double mean : {-6.0, 6.0}) {
    const auto model = network(GetParam(), mean);
    QuantOptions options;
    options.weights.num_bits = options.activations.num_bits = 8;
    options.activations.range = ActivationRange::bn_statistics;
    options.image_lo = -4;
    options.image_hi = 4;
    Student student = test::quantized(model, options);
    calibrate(student, [] { return at::Tensor(); });
    const auto expected = reach(model.graph, model.parameters, images);
    const auto found = reach(student.graph, student.parameters, images);
    const double tolerance = 0.05 * (expected.second - expected.first);
    if (mean > 0)
      EXPECT_NEAR(found.first, expected.first, tolerance);
    else
      EXPECT_NEAR(found.second, expected.second, tolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(Each, FunctionRanges, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace zsq::quant::function_ranges_test
