// SPDX-License-Identifier: Apache-2.0
// Files with QuantizeLinear and DequantizeLinear, read back through
// LoadOptions::make_quantize_chain.
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/models/onnx_file.h"

namespace zsq::models {
namespace {

using test::Ints;
using test::OnnxFile;

class FakeQuantize : public CustomOp {
 public:
  explicit FakeQuantize(const QuantizeChain& chain) : chain_(chain) {}
  std::string kind() const override { return "fake_quantize"; }
  at::Tensor forward(const std::vector<at::Tensor>& inputs, const ParameterStore&) const override {
    const auto zero = static_cast<double>(chain_.zero_point);
    const auto codes = (inputs[0] / static_cast<double>(chain_.scale)).round() + zero;
    return (codes.clamp(chain_.qmin, chain_.qmax) - zero) * static_cast<double>(chain_.scale);
  }

 private:
  QuantizeChain chain_;
};

struct Reader {
  std::vector<QuantizeChain> chains;
  std::vector<std::string> names;
  LoadOptions options;
  Reader() {
    options.make_quantize_chain = [this](const std::string& name, const QuantizeChain& chain,
                                         ParameterStore&) {
      names.push_back(name);
      chains.push_back(chain);
      return std::make_shared<FakeQuantize>(chain);
    };
  }
};

at::Tensor byte(std::int64_t value) { return at::scalar_tensor(value, at::kByte); }
at::Tensor scalar(double value) { return at::scalar_tensor(value, at::kFloat); }

// image -> u8 codes 0..15 -> Conv with int8 weights per channel and an int32 bias.
OnnxFile quantized_conv() {
  OnnxFile file(13, {2, 4, 4});
  file.initializer("s", scalar(0.25))
      .initializer("z", byte(3))
      .initializer("top", byte(15))
      .initializer("w_q", at::tensor(Ints{1, -2, 3, -4}, at::kChar).reshape({2, 2, 1, 1}))
      .initializer("w_s", at::tensor({0.5F, 0.125F}))
      .initializer("w_z", at::tensor(Ints{0, 1}, at::kChar))
      .initializer("b_q", at::tensor(Ints{7, -9}, at::kInt))
      .initializer("b_s", at::tensor({0.125F, 0.03125F}))
      .node("QuantizeLinear", {"x", "s", "z"}, {"q"})
      .node("Min", {"q", "top"}, {"clamped"})
      .node("DequantizeLinear", {"clamped", "s", "z"}, {"dq"})
      .node("DequantizeLinear", {"w_q", "w_s", "w_z"}, {"w"}, {{"axis", std::int64_t{0}}})
      .node("DequantizeLinear", {"b_q", "b_s"}, {"b"}, {{"axis", std::int64_t{0}}})
      .node("Conv", {"dq", "w", "b"}, {"y"});
  return file;
}

TEST(QuantizedFile, ChainWeightsAndBiasAreRead) {
  const auto file = quantized_conv();
  Reader reader;
  const auto x = at::linspace(-2, 5, 64).reshape({2, 2, 4, 4});
  const auto result = file.run(x, reader.options);
  ASSERT_EQ(reader.chains.size(), 1U);
  EXPECT_EQ(reader.names[0], "node_q");
  EXPECT_EQ(reader.chains[0].scale, 0.25F);
  EXPECT_EQ(reader.chains[0].zero_point, 3);
  EXPECT_EQ(reader.chains[0].qmin, 0);
  EXPECT_EQ(reader.chains[0].qmax, 15);
  const auto image = (x / 0.25).round().clamp(-3, 12) * 0.25;
  // (q - z) * s, by hand
  const auto w = at::tensor({0.5F, -1.0F, 0.25F, -0.625F}).reshape({2, 2, 1, 1});
  const auto b = at::tensor({0.875F, -0.28125F});
  EXPECT_TRUE(at::allclose(result, at::conv2d(image, w, b).flatten(1), 1e-5, 1e-6));
}

// Layers that share an input read its codes by a DequantizeLinear each.
TEST(QuantizedFile, CodesMayBeReadSeveralTimes) {
  OnnxFile file(13, {2, 4, 4});
  file.initializer("s", scalar(0.25)).initializer("z", byte(3)).initializer("top", byte(15));
  file.node("QuantizeLinear", {"x", "s", "z"}, {"q"})
      .node("Min", {"q", "top"}, {"clamped"})
      .node("DequantizeLinear", {"q", "s", "z"}, {"whole"})
      .node("DequantizeLinear", {"clamped", "s", "z"}, {"part"})
      .node("DequantizeLinear", {"clamped", "s", "z"}, {"again"})
      .node("Mul", {"part", "again"}, {"square"})
      .node("Add", {"square", "whole"}, {"y"});
  Reader reader;
  const auto x = at::linspace(-2, 5, 64).reshape({2, 2, 4, 4});
  const auto whole = (x / 0.25).round().clamp(-3, 252) * 0.25, part = whole.clamp_max(3);
  EXPECT_TRUE(at::allclose(file.run(x, reader.options), (part * part + whole).flatten(1)));
  EXPECT_EQ(reader.names, (test::Names{"node_q", "node_q_2", "node_q_3"}));
}

// An operator of a higher folder finds its parameters by names that the graph does not know.
TEST(QuantizedFile, ParametersOfTheChainAreKept) {
  LoadOptions options;
  options.make_quantize_chain = [](const std::string& name, const QuantizeChain& chain,
                                   ParameterStore& parameters) {
    parameters.set(name + ".scale", scalar(chain.scale));
    return std::make_shared<FakeQuantize>(chain);
  };
  EXPECT_TRUE(quantized_conv().import(options).parameters.contains("node_q.scale"));
}

// Ranks of 4 bits among the levels of each channel: codes {1, -2} of {-2, 1} and {3, -4} of {-4,
// 3}.
TEST(QuantizedFile, PackedWeightsAreRead) {
  const std::uint8_t ranks[] = {1, 0, 1, 0};
  auto file = quantized_conv();
  file.initializer("levels", at::tensor(Ints{-2, 1, -4, 3}, at::kChar))
      .initializer("offsets", at::tensor(Ints{0, 2}, at::kInt).to(at::kUInt16).view({2, 1, 1, 1}));
  auto& graph = file.file.graph;
  graph.initializers.emplace_back("ranks", formats::pack_u4({2, 2, 1, 1}, ranks));
  const test::Attributes to_i32{{"to", std::int64_t{6}}};
  graph.nodes.insert(graph.nodes.begin(),
                     {{"r", "Cast", "", {"ranks"}, {"r"}, to_i32},
                      {"o", "Cast", "", {"offsets"}, {"o"}, to_i32},
                      {"places", "Add", "", {"r", "o"}, {"places"}, {}},
                      {"unpacked", "Gather", "", {"levels", "places"}, {"unpacked"}, {}}});
  graph.nodes[7].inputs[0] = "unpacked";
  Reader packed, plain;
  const auto x = at::linspace(-2, 5, 64).reshape({2, 2, 4, 4});
  EXPECT_TRUE(at::equal(file.run(x, packed.options), quantized_conv().run(x, plain.options)));
}

TEST(QuantizedFile, MaxAndClipNarrowTheCodesToo) {
  OnnxFile file(13, {2, 4, 4});
  file.initializer("s", scalar(0.5))
      .initializer("z", at::scalar_tensor(std::int64_t{-4}, at::kChar))
      .initializer("low", at::scalar_tensor(std::int64_t{-4}, at::kChar))
      .initializer("high", at::scalar_tensor(std::int64_t{3}, at::kChar))
      .node("QuantizeLinear", {"x", "s", "z"}, {"q"})
      .node("Max", {"q", "low"}, {"m"})
      .node("Clip", {"m", "", "high"}, {"c"})
      .node("DequantizeLinear", {"c", "s", "z"}, {"y"});
  Reader reader;
  file.import(reader.options);
  ASSERT_EQ(reader.chains.size(), 1U);
  EXPECT_EQ(reader.chains[0].qmin, -4);
  EXPECT_EQ(reader.chains[0].qmax, 3);
}

TEST(QuantizedFile, IsRefusedWithoutAFactory) {
  try {
    quantized_conv().import();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported_model);
    EXPECT_NE(std::string(error.what()).find("already quantized"), std::string::npos);
  }
}

// A scale per channel of the image, which NNCF 3.4.0 writes before a depthwise convolution.
TEST(QuantizedFile, ActivationsPerChannelAreRefusedByName) {
  OnnxFile file(13, {2, 4, 4});
  file.initializer("s", at::tensor({0.25F, 0.5F}))
      .initializer("z", at::tensor(Ints{3, 4}, at::kByte))
      .initializer("w", at::linspace(-1, 1, 18).reshape({2, 1, 3, 3}))
      .node("QuantizeLinear", {"x", "s", "z"}, {"q"}, {{"axis", std::int64_t{1}}})
      .node("DequantizeLinear", {"q", "s", "z"}, {"dq"}, {{"axis", std::int64_t{1}}})
      .node("Conv", {"dq", "w"}, {"y"}, {{"group", std::int64_t{2}}});
  Reader reader;
  try {
    file.import(reader.options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported_model);
    EXPECT_NE(std::string(error.what()).find("per channel"), std::string::npos) << error.what();
  }
}

// Codes that are read at twice the scale stand for twice the values.
TEST(QuantizedFile, CodesMayBeReadAtAnotherScale) {
  auto file = quantized_conv();
  file.initializer("other", scalar(0.5)).file.graph.nodes[2].inputs[1] = "other";
  Reader reader;
  const auto x = at::linspace(-2, 5, 64).reshape({2, 2, 4, 4});
  const auto image = (x / 0.25).round().clamp(-3, 12) * 0.5;
  const auto w = at::tensor({0.5F, -1.0F, 0.25F, -0.625F}).reshape({2, 2, 1, 1});
  const auto b = at::tensor({0.875F, -0.28125F});
  EXPECT_TRUE(
      at::allclose(file.run(x, reader.options), at::conv2d(image, w, b).flatten(1), 1e-5, 1e-6));
}

TEST(QuantizedFile, ZeroPointsOfOneChainMustAgree) {
  auto file = quantized_conv();
  file.initializer("other", byte(4)).file.graph.nodes[2].inputs[2] = "other";
  Reader reader;
  EXPECT_THROW(file.import(reader.options), Error);
}

TEST(QuantizedFile, IntegersReachNothingButTheChain) {
  auto file = quantized_conv();
  file.file.graph.nodes[2].op_type = "Relu";
  file.file.graph.nodes[2].inputs = {"clamped"};
  Reader reader;
  EXPECT_THROW(file.import(reader.options), Error);
}

}  // namespace
}  // namespace zsq::models
