// SPDX-License-Identifier: Apache-2.0
#include "tests/exporters/networks.h"

#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "core/seed.h"
#include "quant/calibration/ranges.h"
#include "tests/support/quantized.h"

namespace zsq::test {
namespace {

using models::NodeId;

// Gammas of both signs; channel 1 has none.
at::Tensor gammas(at::Tensor drawn) {
  drawn.add_(0.7);
  drawn[0].mul_(-1);
  drawn[1].zero_();
  return drawn;
}

NetworkBuilder awkward_builder(std::uint64_t seed) {
  return NetworkBuilder({3, 16, 16},
                        [seed](const std::string& name, const std::string& role,
                               const std::vector<std::int64_t>& shape) -> at::Tensor {
                          const auto drawn = [&](double deviation) {
                            return normal(shape, stream_seed(seed, name, 0)) * deviation;
                          };
                          if (shape.size() == 4)
                            return drawn(1.5 / std::sqrt(shape[1] * shape[2] * shape[3]));
                          if (role == "bias") return drawn(name == "fc.bias" ? 0.5 : 0.3);
                          if (role == "gamma") return gammas(drawn(0.5));
                          if (role == "variance") return drawn(0.5).abs_().add_(0.5);
                          return drawn(0.5);
                        });
}

constexpr double kEps = 1e-3;  // of BatchNorm

}  // namespace

models::Model awkward_network(std::uint64_t seed) {
  NetworkBuilder net = awkward_builder(seed);
  const models::Conv2d same{.pads = {1, 1, 1, 1}};
  NodeId x = net.conv("stem", net.input(), {8, 3, 3, 3}, same);
  x = net.relu("stem_relu", net.batch_norm("stem_bn", x, 8, kEps));

  NodeId y = net.conv("a1", x, {8, 8, 3, 3}, same);
  y = net.relu("a1_relu", net.batch_norm("a1_bn", y, 8, kEps));
  y = net.batch_norm("a2_bn", net.conv("a2", y, {8, 8, 3, 3}, same), 8, kEps);
  x = net.relu("a_relu", net.op("a_add", models::Add{}, {y, x}));

  const models::Conv2d depthwise{.stride = {2, 2}, .pads = {0, 0, 1, 1}, .groups = 8};
  y = net.batch_norm("b1_bn", net.conv("b1", x, {8, 1, 3, 3}, depthwise), 8, kEps);
  y = net.op("b1_relu6", models::Clip{0, 6}, {y});
  y = net.batch_norm("b2_bn", net.conv("b2", y, {16, 8, 1, 1}, {}), 16, kEps);
  constexpr std::int64_t end = std::numeric_limits<std::int64_t>::max();
  NodeId skip = net.op("b_rows", models::Slice{2, 0, end, 2}, {x});
  skip = net.op("b_columns", models::Slice{3, 0, end, 2}, {skip});
  skip = net.op("b_pad", models::Pad{{0, 4, 0, 0}, {0, 4, 0, 0}, 0}, {skip});
  x = net.op("b_add", models::Add{}, {y, skip});
  x = net.relu("b_relu", net.batch_norm("b_bn", x, 16, kEps));
  x = net.op("pool", models::GlobalAvgPool{false}, {x});
  x = net.linear("fc", x, 16, 5);

  net.at("a1.weight").select(0, 3).zero_();     // no weight at all
  net.at("b1.weight").select(0, 2).mul_(1e-9);  // next to none, and variance 0
  net.at("b1_bn.variance")[2].zero_();
  return net.finish(x, 5);
}

models::Model operator_zoo(std::uint64_t seed) {
  NetworkBuilder net = awkward_builder(seed);
  const models::Conv2d same{.pads = {1, 1, 1, 1}};
  NodeId x = net.conv("stem", net.input(), {8, 3, 3, 3}, same, true);
  x = net.op("leaky", models::LeakyRelu{0.1}, {x});
  const NodeId largest = net.op("largest", models::MaxPool{{3, 3}, {2, 2}, {1, 1, 1, 1}}, {x});
  const NodeId mean = net.op("mean", models::AvgPool{{2, 2}, {2, 2}}, {x});
  x = net.op("both", models::Concat{1}, {largest, mean});
  NodeId gate = net.op("squeeze", models::GlobalAvgPool{}, {x});
  gate = net.conv("reduce", gate, {4, 16, 1, 1}, {}, true);
  gate = net.conv("expand", net.op("swish", models::HardSwish{}, {gate}), {16, 4, 1, 1}, {}, true);
  x = net.op("gated", models::Mul{}, {x, net.op("gate", models::HardSigmoid{}, {gate})});
  x = net.op("split", models::Reshape{{2, 8, 8, 8}}, {x});
  x = net.op("swap", models::Transpose{{0, 2, 1, 3, 4}}, {x});
  x = net.op("join", models::Reshape{{16, 8, 8}}, {x});
  x = net.conv("grouped", x, {8, 8, 3, 3}, {.pads = {1, 1, 1, 1}, .groups = 2}, true);
  x = net.op("window", models::Clip{0.25F, 2}, {x});
  x = net.op("larger", models::Resize{{2, 2}}, {x});
  x = net.conv("dilated", x, {8, 8, 3, 3}, {.pads = {2, 2, 2, 2}, .dilation = {2, 2}}, true);
  x = net.op("sigmoid", models::Sigmoid{}, {x});
  x = net.op("pool", models::GlobalAvgPool{}, {x});
  x = net.op("flat", models::Flatten{}, {x});
  x = net.linear("fc", x, 8, 5);
  return net.finish(x, 5);
}

models::Model layer_zoo(std::uint64_t seed) {
  NetworkBuilder net = awkward_builder(seed);
  const auto block = [&](const std::string& name, NodeId x, std::vector<std::int64_t> shape,
                         models::Conv2d conv) {
    return net.batch_norm(name + "_bn", net.conv(name, x, shape, conv), shape[0], kEps);
  };
  NodeId x = block("stem", net.input(), {8, 3, 3, 3}, {.stride = {2, 2}, .pads = {1, 1, 1, 1}});
  x = net.op("stem_swish", models::HardSwish{}, {x});
  x = block("depthwise", x, {8, 1, 3, 3}, {.pads = {1, 1, 1, 1}, .groups = 8});
  x = net.op("depthwise_relu6", models::Clip{0, 6}, {x});
  NodeId gate = net.op("squeeze", models::GlobalAvgPool{}, {x});
  gate = net.relu("reduce_relu", net.conv("reduce", gate, {4, 8, 1, 1}, {}, true));
  gate = net.op("gate", models::HardSigmoid{}, {net.conv("excite", gate, {8, 4, 1, 1}, {}, true)});
  x = net.op("gated", models::Mul{}, {x, gate});
  x = block("pointwise", x, {16, 8, 1, 1}, {});
  const NodeId y = block("grouped", x, {16, 4, 3, 3}, {.pads = {1, 1, 1, 1}, .groups = 4});
  x = net.relu("grouped_relu", net.op("add", models::Add{}, {x, y}));
  x = block("dilated", x, {16, 16, 3, 3}, {.pads = {2, 2, 2, 2}, .dilation = {2, 2}});
  x = net.relu("dilated_relu", x);
  x = block("narrowed", x, {16, 1, 5, 5}, {.stride = {2, 2}, .pads = {2, 2, 2, 2}, .groups = 16});
  x = net.op("pool", models::GlobalAvgPool{false}, {net.relu("narrowed_relu", x)});
  return net.finish(net.linear("fc", x, 16, 5), 5);
}

models::Model convnext_units(std::uint64_t seed) {
  NetworkBuilder net({3, 16, 16}, varied_parameters(seed));
  const auto parameter = [&](const std::string& name, const std::vector<std::int64_t>& shape) {
    net.model().parameters.set(name, normal(shape, ++seed, 0.3F).add(1));
    return name;
  };
  const auto layer_norm = [&](const std::string& name, NodeId x, bool of_map) {
    return net.op(
        name, models::LayerNorm{1e-3, of_map}, {x},
        {{"gamma", parameter(name + ".gamma", {8})}, {"beta", parameter(name + ".beta", {8})}});
  };
  NodeId x = net.conv("stem", net.input(), {8, 3, 2, 2}, {.stride = {2, 2}}, true);
  x = layer_norm("stem_norm", x, true);
  NodeId y = net.conv("depthwise", x, 8, 8, 7, 8, true);
  y = net.conv("wide", layer_norm("norm", y, true), 8, 32, 1, 1, true);
  y = net.conv("narrow", net.op("gelu", models::Gelu{}, {y}), 32, 8, 1, 1, true);
  const NodeId scale =
      net.op("scale", models::Parameter{}, {}, {{"value", parameter("scale.value", {8, 1, 1})}});
  x = net.op("add", models::Add{}, {net.op("scaled", models::Mul{}, {scale, y}), x});
  x = net.op("flat", models::Flatten{}, {net.op("pool", models::GlobalAvgPool{}, {x})});
  return net.finish(net.linear("fc", layer_norm("head_norm", x, false), 8, 5), 5);
}

QuantOptions scheme(std::int64_t weight_bits, std::int64_t activation_bits, Target target) {
  QuantOptions options;
  options.target = target;
  options.weights.num_bits = weight_bits;
  options.weights.range = WeightRange::min_max;
  options.activations.num_bits = activation_bits;
  options.activations.range = ActivationRange::min_max;
  options.activations.calibration_images = 64;
  return options;
}

quant::Student student_of(const models::Model& teacher, const QuantOptions& options) {
  quant::Student student = test::quantized(teacher, options);
  const auto& shape = teacher.graph.input_shape;
  std::uint64_t seed = 100;
  quant::calibrate(student, [&] { return normal({16, shape[0], shape[1], shape[2]}, ++seed); });
  return student;
}

quant::Student for_target(quant::Student student, Target target) {
  student.options.target = target;
  return student;
}

double code_worth(const quant::Student& student) {
  double worth = 0;
  for (const quant::WeightSite& site : quant::weight_sites(student)) {
    const models::Node& layer = student.graph[site.layer];
    const auto* input = quant::activation_quantizer(student.graph[layer.inputs[0]]);
    if (!models::is<models::Linear>(layer) || !input) continue;
    worth = student.parameters.at(input->scale_name()).item<double>() *
            student.parameters.at(site.parameter).abs().max().item<double>();
  }
  return worth;
}

void expect_same_up_to_flips(const at::Tensor& logits, const at::Tensor& expected,
                             const quant::Student& student) {
  const at::Tensor gap = (logits - expected).abs();
  EXPECT_LE(gap.max().item<double>(), 6 * code_worth(student));
  EXPECT_LE(gap.mean().item<double>(), code_worth(student));
}

}  // namespace zsq::test
