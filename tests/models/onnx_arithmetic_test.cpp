// SPDX-License-Identifier: Apache-2.0
// Activations, linear layers, BatchNorm and sums in the forms that exporters write, against plain
// ATen.
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/hardswish.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/softmax.h>

#include "tests/models/operators.h"

namespace zsq::models::onnx_arithmetic_test {
namespace {

TEST(Activations, BothFormsOfHardSwish) {
  OnnxFile whole(14, kImage);
  whole.node("HardSwish", {"x"}, {"y"});
  expect_near(whole.run(image()), at::hardswish(image()));
  OnnxFile parts(13, kImage);
  parts.node("HardSigmoid", {"x"}, {"gate"}, {{"alpha", 1.0F / 6}})
      .node("Mul", {"x", "gate"}, {"y"});
  expect_near(parts.run(image()), at::hardswish(image()));
}

TEST(Activations, ClipByAttributesAndInputs) {
  OnnxFile attributes(10, kImage);
  attributes.node("Clip", {"x"}, {"y"}, {{"min", 0.0F}, {"max", 2.0F}});
  expect_near(attributes.run(image()), image().clamp(0, 2));
  OnnxFile inputs(11, kImage);
  inputs.node("Constant", {}, {"high"}, {{"value", to_array(scalar(1))}})
      .node("Clip", {"x", "", "high"}, {"y"});
  expect_near(inputs.run(image()), image().clamp_max(1));
  OnnxFile pair(11, kImage);
  pair.initializer("low", scalar(-1))
      .initializer("high", scalar(1))
      .node("Max", {"x", "low"}, {"m"})
      .node("Min", {"m", "high"}, {"y"});
  expect_near(pair.run(image()), image().clamp(-1, 1));
}

TEST(Activations, LeakySiluSoftmaxAndNormalisation) {
  OnnxFile file(13, kImage);
  file.initializer("mean", wave({1, 4, 1, 1}))
      .initializer("std", wave({1, 4, 1, 1}).abs() + 1)
      .node("Sub", {"x", "mean"}, {"centred"})
      .node("Div", {"centred", "std"}, {"scaled"})
      .node("LeakyRelu", {"scaled"}, {"leaky"}, {{"alpha", 0.1F}})
      .node("Sigmoid", {"leaky"}, {"gate"})
      .node("Mul", {"leaky", "gate"}, {"silu"})
      .node("Dropout", {"silu"}, {"kept", "mask"})
      .node("Softmax", {"kept"}, {"y"}, {{"axis", std::int64_t{1}}});
  const auto scaled = (image() - wave({1, 4, 1, 1})) / (wave({1, 4, 1, 1}).abs() + 1);
  const auto leaky = at::leaky_relu(scaled, 0.1);
  expect_near(file.run(image()), at::softmax(leaky * leaky.sigmoid(), 1));
}

TEST(Linear, GemmWithFactorsAndMatMulWithAdd) {
  const auto pooled = image().mean({2, 3});
  const auto w = wave({4, 5}), b = wave({5});
  OnnxFile gemm(13, kImage);
  gemm.initializer("w", w)
      .initializer("b", b)
      .node("GlobalAveragePool", {"x"}, {"p"})
      .node("Flatten", {"p"}, {"f"})
      .node("Gemm", {"f", "w", "b"}, {"y"}, {{"alpha", 0.5F}, {"beta", 2.0F}});
  expect_near(gemm.run(image()), 0.5 * pooled.matmul(w) + 2 * b);
  OnnxFile matmul(13, kImage);
  matmul.initializer("w", w)
      .initializer("b", b)
      .node("GlobalAveragePool", {"x"}, {"p"})
      .node("Squeeze", {"p"}, {"f"})
      .node("MatMul", {"f", "w"}, {"m"})
      .node("Add", {"b", "m"}, {"y"});
  const auto model = matmul.import();
  EXPECT_EQ(count<Linear>(model), 1);
  EXPECT_EQ(count<Add>(model) + count<Parameter>(model), 0);
  expect_near(matmul.run(image()), pooled.matmul(w) + b);
}

// Only the sum goes through the Add; the product is read once more, under another name.
TEST(Linear, AnAddBehindAProductThatIsReadTwiceStaysAnAdd) {
  OnnxFile file(13, kImage);
  const auto w = wave({4, 5}), b = wave({5});
  file.initializer("w", w)
      .initializer("b", b)
      .node("GlobalAveragePool", {"x"}, {"p"})
      .node("Flatten", {"p"}, {"f"})
      .node("MatMul", {"f", "w"}, {"m"})
      .node("Identity", {"m"}, {"again"})
      .node("Add", {"again", "b"}, {"sum"})
      .node("Mul", {"m", "sum"}, {"y"});
  const auto product = image().mean({2, 3}).matmul(w);
  expect_near(file.run(image()), product * (product + b));
}

TEST(BatchNormalization, RunsInInferenceAndWarnsOfTrainingMode) {
  OnnxFile file(14, kImage);
  const auto g = wave({4}), b = g.cos(), m = g.sin(), v = g.abs() + 0.5;
  file.initializer("bn.weight", g)
      .initializer("b", b)
      .initializer("m", m)
      .initializer("v", v)
      .node("BatchNormalization", {"x", "bn.weight", "b", "m", "v"}, {"y"},
            {{"epsilon", 1e-3F}, {"training_mode", std::int64_t{1}}});
  expect_near(file.run(image()), at::batch_norm(image(), g, b, m, v, false, 0, 1e-3, false));
  const auto model = file.import();
  ASSERT_EQ(model.warnings.size(), 1U);
  EXPECT_NE(model.warnings[0].find("'bn'"), std::string::npos);
}

}  // namespace
}  // namespace zsq::models::onnx_arithmetic_test
