// SPDX-License-Identifier: Apache-2.0
// Exactly which tensors are quantized, at how many bits, in both modes.
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <set>

#include "core/error.h"
#include "models/execute.h"
#include "quant/student.h"
#include "tests/support/network_builder.h"
#include "tests/support/quantized.h"

namespace zsq::quant {
namespace {

using models::NodeId;
using test::NetworkBuilder;
using Strings = std::set<std::string>;

QuantOptions options_for(Mode mode) {
  QuantOptions options;
  options.mode = mode;
  return options;
}

// "<bits> <tensor it quantizes>", and "= <quantizer>" where it repeats that one's grid.
Strings quantizers(const Student& student) {
  Strings result;
  for (NodeId id : activation_sites(student.graph)) {
    const auto& node = student.graph[id];
    const auto* op = activation_quantizer(node);
    std::string text =
        std::to_string(op->spec().num_bits) + " " + student.graph[node.inputs[0]].name;
    if (op->scale_name() != node.name + ".scale") text += " = " + op->scale_name();
    result.insert(text);
  }
  return result;
}

// The inputs that a node reads, by name.
std::vector<std::string> reads(const Student& student, const std::string& node) {
  std::vector<std::string> names;
  for (NodeId id : student.graph[student.graph.id_of(node)].inputs)
    names.push_back(student.graph[id].name);
  return names;
}

std::map<std::string, std::int64_t> weight_bits(const Student& student) {
  std::map<std::string, std::int64_t> bits;
  for (const auto& site : weight_sites(student))
    bits[student.graph[site.layer].name] = site.op->spec().num_bits;
  return bits;
}

using Names = std::vector<std::string>;
using Bits = std::map<std::string, std::int64_t>;

TEST(Placement, ResidualBlockForOnnxRuntime) {
  const auto student = test::quantized(test::residual_network(), options_for(Mode::deploy));
  EXPECT_EQ(quantizers(student),
            (Strings{"8 input", "8 stem.relu", "4 stem.relu.quantizer", "4 a.relu", "8 b.bn",
                     "4 relu", "8 c.relu", "8 pool", "8 flatten = pool.quantizer.scale"}));
  EXPECT_EQ(reads(student, "stem"), (Names{"input.quantizer", "stem.weight_quantizer"}));
  EXPECT_EQ(reads(student, "a"), (Names{"stem.relu.quantizer4", "a.weight_quantizer"}));
  EXPECT_EQ(reads(student, "add"), (Names{"b.bn.quantizer", "stem.relu.quantizer"}));
  EXPECT_EQ(reads(student, "fc"), (Names{"flatten.quantizer", "fc.weight_quantizer"}));
  EXPECT_EQ(weight_bits(student), (Bits{{"stem", 8}, {"a", 4}, {"b", 4}, {"c", 4}, {"fc", 8}}));
  EXPECT_EQ(float_tensors(student), Names{});
}

TEST(Placement, ResidualBlockAsPublished) {
  const auto student = test::quantized(test::residual_network(), options_for(Mode::paper));
  EXPECT_EQ(quantizers(student), (Strings{"4 stem.relu", "4 a.relu", "4 relu", "4 c.relu"}));
  EXPECT_EQ(reads(student, "a"), (Names{"stem.relu.quantizer", "a.weight_quantizer"}));
  EXPECT_EQ(reads(student, "add"), (Names{"b.bn", "stem.relu.quantizer"}));
  EXPECT_EQ(reads(student, "pool"), Names{"c.relu.quantizer"});
  EXPECT_EQ(weight_bits(student), (Bits{{"stem", 4}, {"a", 4}, {"b", 4}, {"c", 4}, {"fc", 4}}));
  EXPECT_EQ(float_tensors(student),
            (Names{"network input", "layer output without ReLU", "pooled feature"}));
  for (NodeId id : activation_sites(student.graph))
    EXPECT_EQ(activation_quantizer(student.graph[id])->spec().surrogate,
              cuda_kernels::Surrogate::pass_through);
}

// Layers alone read codes; its int8 has no -128.
TEST(Placement, ResidualBlockForNcnn) {
  auto options = options_for(Mode::deploy);
  options.target = Target::ncnn;
  const auto student = test::quantized(test::residual_network(), options);
  EXPECT_EQ(quantizers(student),
            (Strings{"8 input", "4 stem.relu", "4 a.relu", "4 relu", "8 flatten"}));
  EXPECT_EQ(reads(student, "a"), (Names{"stem.relu.quantizer", "a.weight_quantizer"}));
  EXPECT_EQ(reads(student, "add"), (Names{"b.bn", "stem.relu"}));
  const auto spec_of = [&](const char* node) {
    return activation_quantizer(student.graph[student.graph.id_of(node)])->spec();
  };
  EXPECT_EQ(spec_of("input.quantizer").qmin, -127);
  EXPECT_EQ(spec_of("input.quantizer").qmax, 127);
  EXPECT_EQ(spec_of("stem.relu.quantizer").qmin, 0);
}

TEST(Placement, EqualBitsNeedOneQuantizerPerTensor) {
  auto options = options_for(Mode::deploy);
  options.activations.num_bits = 8;
  const auto student = test::quantized(test::residual_network(), options);
  EXPECT_EQ(quantizers(student),
            (Strings{"8 input", "8 stem.relu", "8 a.relu", "8 b.bn", "8 relu", "8 c.relu", "8 pool",
                     "8 flatten = pool.quantizer.scale"}));
  EXPECT_EQ(reads(student, "a"), (Names{"stem.relu.quantizer", "a.weight_quantizer"}));
}

TEST(Placement, ZeroMeansFirstAndLastAsTheRest) {
  auto options = options_for(Mode::deploy);
  options.first_last_bits = 0;
  options.image_bits = 6;
  const auto student = test::quantized(test::residual_network(), options);
  EXPECT_EQ(weight_bits(student), (Bits{{"stem", 4}, {"a", 4}, {"b", 4}, {"c", 4}, {"fc", 4}}));
  EXPECT_TRUE(quantizers(student).count("6 input"));
  EXPECT_TRUE(quantizers(student).count("4 pool"));
}

// "a" is the second layer; its input is stored once, for the addition, too.
TEST(Placement, TheSecondLayersInputMayHaveBitsOfItsOwn) {
  auto options = options_for(Mode::deploy);
  options.second_input_bits = 8;
  const auto student = test::quantized(test::residual_network(), options);
  EXPECT_EQ(quantizers(student),
            (Strings{"8 input", "8 stem.relu", "4 a.relu", "8 b.bn", "4 relu", "8 c.relu", "8 pool",
                     "8 flatten = pool.quantizer.scale"}));
  EXPECT_EQ(reads(student, "a"), (Names{"stem.relu.quantizer", "a.weight_quantizer"}));
}

// Named layers get their own bits, the first and last too; "a" and "add" read one tensor.
TEST(Placement, NamedLayersHaveBitsOfTheirOwn) {
  auto options = options_for(Mode::deploy);
  options.weights.layer_bits = {{"stem", 6}, {"b", 2}, {"fc", 5}};
  options.activations.layer_bits = {{"a", 3}, {"c", 7}, {"fc", 6}};
  const auto student = test::quantized(test::residual_network(), options);
  EXPECT_EQ(weight_bits(student), (Bits{{"stem", 6}, {"a", 4}, {"b", 2}, {"c", 4}, {"fc", 5}}));
  EXPECT_EQ(quantizers(student),
            (Strings{"8 input", "8 stem.relu", "3 stem.relu.quantizer", "4 a.relu", "8 b.bn",
                     "7 relu", "8 c.relu", "6 pool", "6 flatten = pool.quantizer.scale"}));
  EXPECT_EQ(reads(student, "a"), (Names{"stem.relu.quantizer3", "a.weight_quantizer"}));
  options.mode = Mode::paper;
  EXPECT_EQ(weight_bits(test::quantized(test::residual_network(), options)),
            (Bits{{"stem", 6}, {"a", 4}, {"b", 2}, {"c", 4}, {"fc", 5}}));
  for (auto* named : {&options.weights.layer_bits, &options.activations.layer_bits}) {
    options = options_for(Mode::deploy);
    *named = {{"stam", 4}};
    try {
      test::quantized(test::residual_network(), options);
      ADD_FAILURE();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::usage);
      EXPECT_NE(std::string(error.what()).find("'stem'"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("layer_bits"), std::string::npos) << error.what();
    }
  }
}

// What onnxruntime is fast with: no zero point where q - z would leave int8.
TEST(Placement, EightBitWeightsAreSymmetric) {
  const auto symmetric_layers = [](const QuantOptions& options) {
    Strings layers;
    const auto student = test::quantized(test::residual_network(), options);
    for (const auto& site : weight_sites(student))
      if (site.op->spec().symmetric) {
        layers.insert(student.graph[site.layer].name);
        EXPECT_TRUE(student.parameters.at(site.op->zero_point_name()).eq(0).all().item<bool>());
      }
    return layers;
  };
  auto options = options_for(Mode::deploy);
  EXPECT_EQ(symmetric_layers(options), (Strings{"stem", "fc"}));
  options.weights.layer_bits = {{"a", 8}, {"fc", 7}};
  EXPECT_EQ(symmetric_layers(options), (Strings{"stem", "a"}));
  options.weights.symmetric = Symmetry::no;
  EXPECT_EQ(symmetric_layers(options), Strings{});
  options.weights.symmetric = Symmetry::yes;
  EXPECT_EQ(symmetric_layers(options), (Strings{"stem", "a", "b", "c", "fc"}));
  options = options_for(Mode::paper);
  options.weights.num_bits = 8;
  EXPECT_EQ(symmetric_layers(options), Strings{});
}

// MobileNetV2: an expansion conv after a linear bottleneck, ReLU6, a depthwise conv, a sum without
// ReLU.
models::Model inverted_residual() {
  NetworkBuilder net;
  NodeId x = net.conv_bn("stem", net.input(), 3, 6);
  NodeId y = net.op("expand.relu6", models::Clip{0, 6}, {net.conv_bn("expand", x, 6, 12, 1)});
  y = net.op("dw.relu6", models::Clip{0, 6}, {net.conv_bn("dw", y, 12, 12, 3, 12)});
  y = net.conv_bn("project", y, 12, 6, 1);
  x = net.op("add", models::Add{}, {x, y});
  x = net.conv_bn_relu("head", x, 6, 8, 1);
  x = net.op("pool", models::GlobalAvgPool{false}, {x});
  return net.finish(net.linear("fc", x, 8, 10));
}

TEST(Placement, InvertedResidual) {
  const auto deploy = test::quantized(inverted_residual(), options_for(Mode::deploy));
  EXPECT_EQ(quantizers(deploy),
            (Strings{"8 input", "8 stem.bn", "4 stem.bn.quantizer", "4 expand.relu6", "4 dw.relu6",
                     "8 project.bn", "4 add", "8 head.relu", "8 pool"}));
  const auto paper = test::quantized(inverted_residual(), options_for(Mode::paper));
  EXPECT_EQ(quantizers(paper), (Strings{"4 expand.relu6", "4 dw.relu6", "4 head.relu"}));
  EXPECT_EQ(float_tensors(paper), (Names{"network input", "layer output without ReLU (2 tensors)",
                                         "sum without ReLU", "pooled feature"}));
}

// Squeeze-and-excitation with HardSwish and HardSigmoid, as in MobileNetV3.
TEST(Placement, SqueezeExcitation) {
  NetworkBuilder net;
  NodeId x = net.op("swish", models::HardSwish{}, {net.conv_bn("stem", net.input(), 3, 8)});
  NodeId gate = net.op("squeeze", models::GlobalAvgPool{}, {x});
  gate = net.relu("reduce.relu", net.conv("reduce", gate, 8, 4, 1, 1, true));
  gate = net.op("gate", models::HardSigmoid{}, {net.conv("excite", gate, 4, 8, 1, 1, true)});
  x = net.conv_bn_relu("head", net.op("mul", models::Mul{}, {gate, x}), 8, 8, 1);
  x = net.op("flatten", models::Flatten{}, {net.op("pool", models::GlobalAvgPool{}, {x})});
  const auto model = net.finish(net.linear("fc", x, 8, 10));
  const auto student = test::quantized(model, options_for(Mode::deploy));
  EXPECT_EQ(quantizers(student),
            (Strings{"8 input", "8 stem.bn", "8 swish.gate", "8 swish", "4 squeeze",
                     "4 reduce.relu", "8 excite", "8 gate", "4 mul", "8 head.relu", "8 pool",
                     "8 flatten = pool.quantizer.scale"}));
  EXPECT_EQ(weight_bits(student),
            (Bits{{"stem", 8}, {"reduce", 4}, {"excite", 4}, {"head", 4}, {"fc", 8}}));
}

// x * HardSigmoid(x) is HardSwish(x), and what followed it follows the product.
TEST(Placement, HardSwishIsAProduct) {
  NetworkBuilder net;
  NodeId x = net.op("swish", models::HardSwish{}, {net.conv_bn("stem", net.input(), 3, 8)});
  x = net.op("pool", models::GlobalAvgPool{false}, {x});
  auto teacher = net.finish(net.linear("fc", x, 8, 10));
  const auto student = test::quantized(teacher, options_for(Mode::deploy));
  EXPECT_EQ(reads(student, "swish.gate"), Names{"stem.bn.quantizer"});
  EXPECT_EQ(reads(student, "swish"), (Names{"stem.bn.quantizer", "swish.gate.quantizer"}));
  EXPECT_EQ(reads(student, "pool"), Names{"swish.quantizer"});
  for (const auto& site : weight_sites(student)) {
    auto& weight = teacher.parameters.at(site.parameter);
    weight = site.op->forward({weight}, student.parameters);
  }
  const auto image = test::normal({2, 3, 12, 12}, 5);
  const auto expected = models::execute(teacher.graph, teacher.parameters, image);
  const auto y = models::execute(student.graph, student.parameters, image);
  EXPECT_LT(y.sub(expected).abs().max().item<float>(), 1e-5);
  const auto paper = test::quantized(teacher, options_for(Mode::paper));
  EXPECT_EQ(reads(paper, "swish"), Names{"stem.bn"});
}

// DenseNet: a BatchNorm after a Concat folds into nothing; the pool before it passes values on.
TEST(Placement, ConcatAndMaxPool) {
  NetworkBuilder net;
  NodeId x = net.conv_bn_relu("stem", net.input(), 3, 4);
  x = net.op("maxpool", models::MaxPool{{2, 2}, {2, 2}}, {x});
  NodeId y = net.conv_bn_relu("a", x, 4, 4);
  y = net.op("concat", models::Concat{1}, {x, y});
  y = net.relu("norm.relu", net.batch_norm("norm", y, 8));
  y = net.conv_bn_relu("b", y, 8, 4);
  y = net.op("flatten", models::Flatten{}, {net.op("pool", models::AvgPool{{6, 6}}, {y})});
  const auto model = net.finish(net.linear("fc", y, 4, 10));
  const auto deploy = test::quantized(model, options_for(Mode::deploy));
  EXPECT_EQ(quantizers(deploy),
            (Strings{"8 input", "8 stem.relu", "8 maxpool = stem.relu.quantizer.scale",
                     "4 maxpool.quantizer", "8 a.relu", "8 concat", "4 norm.relu", "8 b.relu",
                     "8 pool", "8 flatten = pool.quantizer.scale"}));
  EXPECT_EQ(reads(deploy, "a"), (Names{"maxpool.quantizer4", "a.weight_quantizer"}));
  EXPECT_EQ(reads(deploy, "concat"), (Names{"maxpool.quantizer", "a.relu.quantizer"}));
  const auto paper = test::quantized(model, options_for(Mode::paper));
  EXPECT_EQ(quantizers(paper), (Strings{"4 stem.relu", "4 a.relu", "4 norm.relu", "4 b.relu"}));
}

// TensorFlow padding before the first conv: both sides carry the image's grid.
TEST(Placement, PadCarriesTheImage) {
  NetworkBuilder net;
  NodeId x = net.op("pad", models::Pad{{0, 0, 0, 0}, {0, 0, 1, 1}}, {net.input()});
  x = net.conv_bn_relu("stem", x, 3, 4);
  x = net.op("pool", models::GlobalAvgPool{false}, {x});
  const auto student =
      test::quantized(net.finish(net.linear("fc", x, 4, 10)), options_for(Mode::deploy));
  EXPECT_EQ(quantizers(student),
            (Strings{"8 input", "8 pad = input.quantizer.scale", "8 stem.relu", "8 pool"}));
}

// A conv with two readers, one of them a BatchNorm, cannot take that BatchNorm up.
TEST(Placement, SharedConvOutputIsQuantizedItself) {
  NetworkBuilder net;
  NodeId c = net.conv("stem", net.input(), 3, 4);
  NodeId x = net.relu("relu", net.batch_norm("norm", c, 4));
  x = net.op("add", models::Add{}, {net.conv("a", x, 4, 4), c});
  const auto student = test::quantized(net.finish(x), options_for(Mode::deploy));
  EXPECT_EQ(quantizers(student), (Strings{"8 input", "8 stem", "8 relu", "8 a"}));
}

}  // namespace
}  // namespace zsq::quant
