// SPDX-License-Identifier: Apache-2.0
// Each operator, in the forms that exporters write, against plain ATen.
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/channel_shuffle.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/hardswish.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "tests/models/onnx_file.h"

namespace zsq::models {
namespace {

using test::Attributes;
using test::Ints;
using test::OnnxFile;
using test::refusal;

at::Tensor wave(const Ints& shape) {
  std::int64_t count = 1;
  for (const auto size : shape) count *= size;
  return at::linspace(0, 0.37 * static_cast<double>(count), count).sin().mul(3).reshape(shape);
}
at::Tensor ints(const Ints& values) { return at::tensor(values, at::kLong); }
at::Tensor scalar(double value) { return at::scalar_tensor(value, at::kFloat); }

void expect_near(const at::Tensor& result, const at::Tensor& expected) {
  ASSERT_EQ(result.sizes(), expected.flatten(1).sizes());
  EXPECT_TRUE(at::allclose(result, expected.flatten(1), 1e-4, 1e-5));
}

template <class Op>
std::int64_t count(const Model& model) {
  std::int64_t result = 0;
  for (const auto& node : model.graph.nodes) result += is<Op>(node) ? 1 : 0;
  return result;
}

const Ints kImage{4, 9, 7};
const at::Tensor& image() {
  static const auto x = wave({2, 4, 9, 7});
  return x;
}

TEST(Conv, AsymmetricPadsGroupsDilationsAndBias) {
  OnnxFile file(11, kImage);
  const auto w = wave({6, 2, 3, 3}), b = wave({6});
  file.initializer("w", w).initializer("b", b).node("Conv", {"x", "w", "b"}, {"y"},
                                                    {{"pads", Ints{0, 1, 2, 3}},
                                                     {"strides", Ints{2, 1}},
                                                     {"dilations", Ints{1, 2}},
                                                     {"group", std::int64_t{2}}});
  expect_near(file.run(image()), at::conv2d(at::constant_pad_nd(image(), {1, 3, 0, 2}), w, b,
                                            {2, 1}, at::IntArrayRef{0, 0}, {1, 2}, 2));
}

TEST(Conv, AutoPadPutsTheOddPixelWhereTensorflowDoes) {
  const auto w = wave({5, 4, 3, 3});
  for (const bool upper : {true, false}) {
    OnnxFile file(11, {4, 8, 7});
    file.initializer("w", w).node(
        "Conv", {"x", "w"}, {"y"},
        {{"auto_pad", std::string(upper ? "SAME_UPPER" : "SAME_LOWER")}, {"strides", Ints{2, 2}}});
    const auto x = wave({2, 4, 8, 7});
    // Height 8 needs one row, at the end or at the start; width 7 a column on each side.
    const auto padded = at::constant_pad_nd(x, {1, 1, upper ? 0 : 1, upper ? 1 : 0});
    expect_near(file.run(x), at::conv2d(padded, w, {}, {2, 2}));
  }
}

TEST(Conv, TakesAZeroPadBeforeIt) {
  OnnxFile file(11, kImage);
  const auto w = wave({5, 4, 3, 3});
  file.initializer("w", w)
      .initializer("p", ints({0, 0, 0, 1, 0, 0, 2, 1}))
      .node("Pad", {"x", "p"}, {"padded"})
      .node("Conv", {"padded", "w"}, {"y"}, {{"pads", Ints{1, 0, 0, 0}}});
  EXPECT_EQ(count<Pad>(file.import()), 0);
  expect_near(file.run(image()), at::conv2d(at::constant_pad_nd(image(), {1, 1, 1, 2}), w));
}

TEST(Conv, HalfPrecisionWeightsAreRead) {
  OnnxFile file(11, kImage);
  const auto w = wave({5, 4, 1, 1}).to(at::kHalf);
  file.initializer("w", w).node("Conv", {"x", "w"}, {"y"});
  expect_near(file.run(image()), at::conv2d(image(), w.to(at::kFloat)));
}

TEST(Conv, LayersThatShareATensorInTheFileGetTheirOwn) {
  OnnxFile file(11, kImage);
  const auto w = wave({4, 4, 1, 1});
  file.initializer("one.weight", w)
      .node("Identity", {"one.weight"}, {"two.weight"})
      .node("Conv", {"x", "one.weight"}, {"a"})
      .node("Conv", {"a", "two.weight"}, {"b"})
      .node("Conv", {"b", "one.weight"}, {"y"});
  auto model = file.import();
  EXPECT_EQ(model.parameters.names().size(), 3U);
  for (const auto& name : model.parameters.names()) {
    EXPECT_TRUE(model.parameters.at(name).equal(w)) << name;
  }
  model.parameters.at("one.weight").zero_();
  EXPECT_TRUE(model.parameters.at("two.weight").equal(w));
}

TEST(Pad, AxesAsInputAndValue) {
  OnnxFile file(18, kImage);
  file.initializer("p", ints({1, 2, 0, 3}))
      .initializer("v", scalar(5))
      .initializer("a", ints({1, -1}))
      .node("Pad", {"x", "p", "v", "a"}, {"y"});
  expect_near(file.run(image()), at::constant_pad_nd(image(), {2, 3, 0, 0, 1, 0}, 5));
}

TEST(Pad, AsAttributesUpToOpset10) {
  OnnxFile file(10, kImage);
  file.node("Pad", {"x"}, {"y"}, {{"pads", Ints{0, 0, 1, 0, 0, 0, 0, 2}}, {"value", 2.0F}});
  expect_near(file.run(image()), at::constant_pad_nd(image(), {0, 2, 1, 0}, 2));
}

TEST(MaxPool, CeilModeAndAsymmetricPads) {
  OnnxFile ceil(11, kImage);
  ceil.node(
      "MaxPool", {"x"}, {"y"},
      {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}, {"ceil_mode", std::int64_t{1}}});
  expect_near(ceil.run(image()), at::max_pool2d(image(), {2, 2}, {2, 2}, {0, 0}, {1, 1}, true));
  OnnxFile asymmetric(11, kImage);
  asymmetric.node(
      "MaxPool", {"x"}, {"y"},
      {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{0, 0, 1, 1}}});
  const auto padded =
      at::constant_pad_nd(image(), {0, 1, 0, 1}, -std::numeric_limits<double>::infinity());
  expect_near(asymmetric.run(image()), at::max_pool2d(padded, {3, 3}, {2, 2}));
}

TEST(AveragePool, CountsPadsOnlyWhereAskedAlsoInCeilMode) {
  for (const std::int64_t include : {0, 1}) {
    for (const std::int64_t ceil : {0, 1}) {
      OnnxFile file(11, kImage);
      file.node("AveragePool", {"x"}, {"y"},
                {{"kernel_shape", Ints{3, 3}},
                 {"strides", Ints{2, 2}},
                 {"pads", Ints{1, 1, 1, 1}},
                 {"ceil_mode", ceil},
                 {"count_include_pad", include}});
      expect_near(file.run(image()),
                  at::avg_pool2d(image(), {3, 3}, {2, 2}, {1, 1}, ceil != 0, include != 0));
    }
  }
}

TEST(AveragePool, IsGlobalOverTheWholeMapAndNothingOverOnePixel) {
  OnnxFile file(11, kImage);
  file.node("AveragePool", {"x"}, {"same"}, {{"kernel_shape", Ints{1, 1}}})
      .node("AveragePool", {"same"}, {"y"}, {{"kernel_shape", Ints{9, 7}}});
  const auto model = file.import();
  EXPECT_EQ(count<AvgPool>(model), 0);
  EXPECT_EQ(count<GlobalAvgPool>(model), 1);
  expect_near(file.run(image()), image().mean({2, 3}));
}

TEST(ReduceMean, AxesAsAttributeAndAsInput) {
  OnnxFile attribute(13, kImage);
  attribute.node("ReduceMean", {"x"}, {"y"},
                 {{"axes", Ints{-1, -2}}, {"keepdims", std::int64_t{0}}});
  expect_near(attribute.run(image()), image().mean({2, 3}));
  OnnxFile input(18, kImage);
  input.initializer("a", ints({2, 3})).node("ReduceMean", {"x", "a"}, {"y"});
  expect_near(input.run(image()), image().mean({2, 3}));
  OnnxFile channels(13, kImage);
  channels.node("ReduceMean", {"x"}, {"y"}, {{"axes", Ints{1}}});
  EXPECT_NE(refusal(channels).find("height and width"), std::string::npos);
}

TEST(Split, SizesAsAttributeAsInputAndByNumber) {
  OnnxFile attribute(11, kImage);
  attribute.node("Split", {"x"}, {"a", "b"}, {{"axis", std::int64_t{1}}, {"split", Ints{1, 3}}})
      .node("Concat", {"b", "a"}, {"y"}, {{"axis", std::int64_t{1}}});
  const auto a = image().slice(1, 0, 1), b = image().slice(1, 1);
  expect_near(attribute.run(image()), at::cat({b, a}, 1));
  OnnxFile input(13, kImage);
  input.initializer("s", ints({1, 3}))
      .node("Split", {"x", "s"}, {"a", "b"}, {{"axis", std::int64_t{-3}}})
      .node("Concat", {"b", "a"}, {"y"}, {{"axis", std::int64_t{-3}}});
  expect_near(input.run(image()), at::cat({b, a}, 1));
  OnnxFile number(18, kImage);
  number
      .node("Split", {"x"}, {"a", "b"},
            {{"axis", std::int64_t{2}}, {"num_outputs", std::int64_t{2}}})
      .node("Concat", {"b", "a"}, {"y"}, {{"axis", std::int64_t{2}}});
  expect_near(number.run(image()), at::cat({image().slice(2, 5), image().slice(2, 0, 5)}, 2));
}

TEST(Split, ToSequence) {
  OnnxFile file(20, kImage);
  file.initializer("two", at::scalar_tensor(std::int64_t{2}, at::kLong))
      .initializer("last", at::scalar_tensor(std::int64_t{-1}, at::kLong))
      .node("SplitToSequence", {"x", "two"}, {"parts"}, {{"axis", std::int64_t{1}}})
      .node("SequenceAt", {"parts", "last"}, {"y"});
  expect_near(file.run(image()), image().slice(1, 2));
}

TEST(Slice, AttributesInputsStepsAndNegativeEnds) {
  OnnxFile attributes(9, kImage);
  attributes.node(
      "Slice", {"x"}, {"y"},
      {{"starts", Ints{1, -5}}, {"ends", Ints{9223372036854775807, -1}}, {"axes", Ints{1, 3}}});
  expect_near(attributes.run(image()), image().slice(1, 1).slice(3, 2, 6));
  OnnxFile inputs(13, kImage);
  inputs.initializer("s", ints({0, 0, 1}))
      .initializer("e", ints({9223372036854775807, 4, 8}))
      .initializer("a", ints({0, 1, 2}))
      .initializer("t", ints({1, 1, 3}))
      .node("Slice", {"x", "s", "e", "a", "t"}, {"y"});
  EXPECT_EQ(count<Slice>(inputs.import()), 1) << "full ranges of batch and channels are nothing";
  expect_near(inputs.run(image()), image().slice(2, 1, 8, 3));
  OnnxFile batch(13, kImage);
  batch.initializer("s", ints({1}))
      .initializer("e", ints({2}))
      .node("Slice", {"x", "s", "e"}, {"y"});
  EXPECT_NE(refusal(batch).find("batch"), std::string::npos);
}

TEST(ChannelShuffle, ThroughShapeArithmetic) {
  OnnxFile file(13, kImage);
  const auto one = [&](const std::string& name, std::int64_t value) {
    file.initializer(name, ints({value}));
  };
  one("i0", 0), one("i1", 1), one("i2", 2), one("i3", 3), one("two", 2);
  file.node("Shape", {"x"}, {"shape"});
  for (const auto* i : {"0", "1", "2", "3"}) {
    file.node("Gather", {"shape", std::string("i") + i}, {std::string("d") + i});
  }
  file.node("Div", {"d1", "two"}, {"half"})
      .node("Concat", {"d0", "two", "half", "d2", "d3"}, {"grouped"}, {{"axis", std::int64_t{0}}})
      .node("Reshape", {"x", "grouped"}, {"g"})
      .node("Transpose", {"g"}, {"t"}, {{"perm", Ints{0, 2, 1, 3, 4}}})
      .node("Reshape", {"t", "shape"}, {"y"});
  expect_near(file.run(image()), at::channel_shuffle(image(), 2));
}

TEST(Reshape, KnowsTheBatchInEachSpelling) {
  for (const auto& target : std::vector<Ints>{{0, -1}, {-1, 252}, {0, 252}}) {
    OnnxFile file(13, kImage);
    file.initializer("s", ints(target)).node("Reshape", {"x", "s"}, {"y"});
    EXPECT_EQ(count<Reshape>(file.import()), 0);
    expect_near(file.run(image()), image());
  }
  OnnxFile fixed(13, kImage);
  fixed.file.graph.inputs[0].shape[0].value = 1;
  fixed.initializer("s", ints({1, 4, -1})).node("Reshape", {"x", "s"}, {"y"});
  expect_near(fixed.run(image()), image());
  OnnxFile mixed(13, kImage);
  mixed.initializer("s", ints({-1, 63})).node("Reshape", {"x", "s"}, {"y"});
  EXPECT_NE(refusal(mixed).find("batch"), std::string::npos);
}

TEST(Shapes, TheOpenBatchIsNotCalculatedWith) {
  OnnxFile file(13, kImage);
  file.initializer("two", ints({2, 1, 1, 1}))
      .node("Shape", {"x"}, {"shape"})
      .node("Mul", {"shape", "two"}, {"doubled"})
      .node("Reshape", {"x", "doubled"}, {"y"});
  EXPECT_NE(refusal(file).find("batch size"), std::string::npos);
}

// TensorFlow's SAME padding as PyTorch code computes it, in floating point, from the shape.
TEST(Shapes, SamePaddingIsFolded) {
  OnnxFile file(13, {3, 8, 8});
  const auto w = wave({2, 3, 3, 3});
  file.initializer("w", w)
      .initializer("i2", at::scalar_tensor(std::int64_t{2}, at::kLong))
      .initializer("stride", scalar(2))
      .initializer("one", scalar(1))
      .initializer("three", scalar(3))
      .initializer("zero", at::zeros({1}, at::kLong))
      .initializer("zeros", at::zeros({6}, at::kLong))
      .initializer("axis", ints({0}))
      .node("Shape", {"x"}, {"shape"})
      .node("Gather", {"shape", "i2"}, {"height"})
      .node("Cast", {"height"}, {"h"}, {{"to", std::int64_t{1}}})
      .node("Div", {"h", "stride"}, {"q"})
      .node("Ceil", {"q"}, {"outputs"})
      .node("Sub", {"outputs", "one"}, {"less"})
      .node("Mul", {"less", "stride"}, {"covered"})
      .node("Add", {"covered", "three"}, {"needed"})
      .node("Sub", {"needed", "h"}, {"missing"})
      .node("Cast", {"missing"}, {"m"}, {{"to", std::int64_t{7}}})
      .node("Unsqueeze", {"m", "axis"}, {"pad"})
      .node("Concat", {"zeros", "pad", "pad"}, {"pads"}, {{"axis", std::int64_t{0}}})
      .node("Pad", {"x", "pads"}, {"padded"})
      .node("Conv", {"padded", "w"}, {"y"}, {{"strides", Ints{2, 2}}});
  const auto x = wave({2, 3, 8, 8});
  expect_near(file.run(x), at::conv2d(at::constant_pad_nd(x, {0, 1, 0, 1}), w, {}, {2, 2}));
}

TEST(Shapes, ConstantsAreCutBackwards) {
  OnnxFile file(13, kImage);  // as torch's F.pad is exported: pairs, reversed and transposed
  file.initializer("pairs", ints({1, 2, 0, 3, 0, 0, 0, 0}))
      .initializer("two", ints({-1, 2}))
      .initializer("minus", ints({-1}))
      .initializer("zero", ints({0}))
      .initializer("lowest", ints({-9223372036854775807}))
      .node("Reshape", {"pairs", "two"}, {"table"})
      .node("Slice", {"table", "minus", "lowest", "zero", "minus"}, {"reversed"})
      .node("Transpose", {"reversed"}, {"turned"}, {{"perm", Ints{1, 0}}})
      .node("Reshape", {"turned", "minus"}, {"pads"})
      .node("Pad", {"x", "pads"}, {"y"});
  expect_near(file.run(image()), at::constant_pad_nd(image(), {1, 2, 0, 3}));
}

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

TEST(Resize, NearestByScalesAndBySizes) {
  const auto expected = image().repeat_interleave(2, 2).repeat_interleave(3, 3);
  const Attributes floor{{"mode", std::string("nearest")},
                         {"coordinate_transformation_mode", std::string("asymmetric")},
                         {"nearest_mode", std::string("floor")}};
  OnnxFile scales(13, kImage);
  scales.initializer("s", at::tensor({1.0F, 1.0F, 2.0F, 3.0F}))
      .node("Resize", {"x", "", "s"}, {"y"}, floor);
  expect_near(scales.run(image()), expected);
  OnnxFile sizes(13, kImage);
  sizes.initializer("hw", ints({18, 21}))
      .initializer("zero", ints({0}))
      .initializer("two", ints({2}))
      .node("Shape", {"x"}, {"shape"})
      .node("Slice", {"shape", "zero", "two"}, {"nc"})
      .node("Concat", {"nc", "hw"}, {"sizes"}, {{"axis", std::int64_t{0}}})
      .node("Resize", {"x", "", "", "sizes"}, {"y"}, floor);
  expect_near(sizes.run(image()), expected);
  OnnxFile upsample(9, kImage);
  upsample.initializer("s", at::tensor({1.0F, 1.0F, 2.0F, 3.0F}))
      .node("Upsample", {"x", "s"}, {"y"}, {{"mode", std::string("nearest")}});
  expect_near(upsample.run(image()), expected);
  OnnxFile linear(13, kImage);
  linear.initializer("s", at::tensor({1.0F, 1.0F, 2.0F, 2.0F}))
      .node("Resize", {"x", "", "s"}, {"y"}, {{"mode", std::string("linear")}});
  EXPECT_NE(refusal(linear).find("nearest"), std::string::npos);
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

TEST(Broadcasting, NeverAlongTheBatch) {
  OnnxFile file(13, kImage);
  file.initializer("c", wave({2, 1, 1, 1})).node("Add", {"x", "c"}, {"y"});
  EXPECT_NE(refusal(file).find("batch"), std::string::npos);
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

TEST(Dynamo, ZeroBiasOfAConvolutionIsDropped) {
  OnnxFile file(20, kImage);
  const auto w = wave({5, 4, 1, 1});
  file.initializer("w", w)
      .node("Shape", {"w"}, {"out"}, {{"start", std::int64_t{0}}, {"end", std::int64_t{1}}})
      .node("Constant", {}, {"one"}, {{"value_ints", Ints{1}}})
      .node("Expand", {"out", "one"}, {"size"})
      .node("Constant", {}, {"zero"}, {{"value", to_array(scalar(0))}})
      .node("CastLike", {"zero", "x"}, {"like"})
      .node("Expand", {"like", "size"}, {"bias"})
      .node("Conv", {"x", "w", "bias"}, {"y"});
  const auto model = file.import();
  EXPECT_EQ(model.parameters.names(), test::Names{"w"});
  expect_near(file.run(image()), at::conv2d(image(), w));
}

}  // namespace
}  // namespace zsq::models
