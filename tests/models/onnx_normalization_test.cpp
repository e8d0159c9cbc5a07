// SPDX-License-Identifier: Apache-2.0
// LayerNormalization, GELU and linear layers over the channels of a map, as exporters write them
// between two transpositions, against plain ATen.
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/scalar_tensor.h>

#include <cmath>
#include <map>

#include "tests/models/operators.h"
#include "tests/support/network_builder.h"

namespace zsq::models::onnx_normalization_test {
namespace {

const Attributes kChannelsLast{{"perm", Ints{0, 2, 3, 1}}},
    kChannelsFirst{{"perm", Ints{0, 3, 1, 2}}};

at::Tensor gamma() { return test::normal({4}, 11); }
at::Tensor beta() { return test::normal({4}, 12); }
at::Tensor wide() { return test::normal({4, 12}, 13); }
at::Tensor narrow() { return test::normal({12, 4}, 14); }
at::Tensor bias() { return test::normal({12}, 15); }

// A unit of ConvNeXt after its depthwise convolution.
OnnxFile convnext_unit() {
  OnnxFile file(17, kImage);
  file.initializer("norm.weight", gamma()).initializer("norm.bias", beta());
  file.initializer("wide", wide()).initializer("wide.bias", bias()).initializer("narrow", narrow());
  for (const auto& [name, value] :
       {std::pair{"root", std::sqrt(2.0)}, std::pair{"one", 1.0}, std::pair{"half", 0.5}})
    file.initializer(name, at::scalar_tensor(value, at::kFloat));
  file.node("Transpose", {"x"}, {"t"}, kChannelsLast)
      .node("LayerNormalization", {"t", "norm.weight", "norm.bias"}, {"n"}, {{"epsilon", 0.01F}})
      .node("MatMul", {"n", "wide"}, {"m"})
      .node("Add", {"wide.bias", "m"}, {"w"})
      .node("Div", {"w", "root"}, {"d"})
      .node("Erf", {"d"}, {"e"})
      .node("Add", {"e", "one"}, {"s"})
      .node("Mul", {"w", "s"}, {"p"})
      .node("Mul", {"p", "half"}, {"g"})
      .node("MatMul", {"g", "narrow"}, {"o"})
      .node("Transpose", {"o"}, {"u"}, kChannelsFirst)
      .node("Add", {"u", "x"}, {"y"});
  return file;
}

TEST(Normalization, AUnitOfConvNextComputesWhatAtenDoes) {
  auto x = at::layer_norm(image().permute({0, 2, 3, 1}), {4}, gamma(), beta(), 0.01);
  x = at::gelu(at::linear(x, wide().t(), bias()));
  x = at::linear(x, narrow().t()).permute({0, 3, 1, 2});
  expect_near(convnext_unit().run(image()), x + image());
}

// What is written on [N, H, W, C] runs on maps, where it can be quantized.
TEST(Normalization, AUnitOfConvNextIsConvolutionsOnMaps) {
  const Model model = convnext_unit().import();
  std::map<std::string, int> operators;
  for (const auto& node : model.graph.nodes) ++operators[op_name(node.op)];
  EXPECT_EQ(operators["Transpose"], 0);
  EXPECT_EQ(operators["Linear"], 0);
  EXPECT_EQ(operators["Conv2d"], 2);
  EXPECT_EQ(operators["LayerNorm"], 1);
  EXPECT_EQ(operators["Gelu"], 1);
  EXPECT_EQ(operators["Mul"], 0);
}

TEST(Normalization, OfFeatures) {
  OnnxFile file(17, kImage);
  file.initializer("w", gamma())
      .node("ReduceMean", {"x"}, {"m"}, {{"axes", Ints{2, 3}}, {"keepdims", std::int64_t{0}}})
      .node("LayerNormalization", {"m", "w"}, {"y"});
  expect_near(file.run(image()), at::layer_norm(image().mean({2, 3}), {4}, gamma()));
}

}  // namespace
}  // namespace zsq::models::onnx_normalization_test
