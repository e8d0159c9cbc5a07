// SPDX-License-Identifier: Apache-2.0
// Operators that cut, join and rearrange, and the arithmetic on shapes that exporters write around
// them, against plain ATen.
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/channel_shuffle.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "tests/models/operators.h"

namespace zsq::models {
namespace {

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

// y = x times the sum over what Range gives, as exporters write indices.
OnnxFile times_range(const at::Tensor& start, const at::Tensor& limit, const at::Tensor& delta) {
  OnnxFile file(17, kImage);
  file.initializer("start", start)
      .initializer("limit", limit)
      .initializer("delta", delta)
      .node("Range", {"start", "limit", "delta"}, {"all"})
      .initializer("last", ints({-1}))
      .node("Gather", {"all", "last"}, {"number"})
      .node("Cast", {"number"}, {"factor"}, {{"to", std::int64_t{1}}})
      .node("Mul", {"x", "factor"}, {"y"});
  return file;
}

TEST(Range, CountsOnConstants) {
  const auto whole = [](std::int64_t value) { return at::scalar_tensor(value, at::kLong); };
  expect_near(times_range(whole(2), whole(10), whole(3)).run(image()), image() * 8);
  expect_near(times_range(whole(7), whole(-2), whole(-4)).run(image()), image() * -1);
  expect_near(times_range(scalar(0.5), scalar(1.75), scalar(0.5)).run(image()), image() * 1.5);
  const auto says = [&](std::int64_t start, std::int64_t limit, std::int64_t delta) {
    return refusal(times_range(whole(start), whole(limit), whole(delta)));
  };
  EXPECT_NE(says(0, 5, 0).find("never comes to its end"), std::string::npos);
  EXPECT_THROW(times_range(whole(0), whole(std::int64_t{1} << 50), whole(1)).import(), Error);
}

TEST(Range, UpToTheBatchTellsWhatToDo) {
  OnnxFile file(17, kImage);
  file.initializer("zero", at::scalar_tensor(std::int64_t{0}, at::kLong))
      .initializer("one", at::scalar_tensor(std::int64_t{1}, at::kLong))
      .node("Shape", {"x"}, {"shape"})
      .node("Gather", {"shape", "zero"}, {"batch"})
      .node("Range", {"zero", "batch", "one"}, {"y"});
  EXPECT_NE(refusal(file).find("batch of fixed size"), std::string::npos);
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

// PyTorch's exporter writes as_strided so, after a mean over a map in channels_last.
TEST(Gather, AllElementsInTheirOrder) {
  const auto of = [](const at::Tensor& indices) {
    OnnxFile file(18, kImage);
    file.file.graph.inputs[0].shape[0].value = 2;
    file.initializer("row", ints({-1})).initializer("all", indices);
    file.node("Reshape", {"x", "row"}, {"r"}).node("Gather", {"r", "all"}, {"y"});
    return file;
  };
  const auto all = at::arange(2 * 252, at::kLong);
  expect_near(of(all.view({2, 63, 4, 1})).run(image()), image());
  EXPECT_EQ(count<Reshape>(of(all.view({2, 4, 9, 7})).import()), 0);
  EXPECT_NE(refusal(of(all.flip(0).view({2, 252}))).find("in their order"), std::string::npos);
  EXPECT_NE(refusal(of(all.view({4, 126}))).find("in their order"), std::string::npos);
  OnnxFile lost(18, kImage);
  lost.initializer("row", ints({-1})).node("Reshape", {"x", "row"}, {"y"});
  EXPECT_NE(refusal(lost).find("batch"), std::string::npos);
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
}

// Queries, keys and values of attention: the three come before the batch, and are taken apart.
TEST(Shapes, TheBatchMayBeBehindADimensionThatIsTakenApart) {
  const auto scalar = [](std::int64_t value) { return at::scalar_tensor(value, at::kLong); };
  const auto x = image();  // [2, 4, H, W] as [2, H W, 2, 2]
  const auto tokens = x.size(2) * x.size(3);
  const auto qkv = x.reshape({2, tokens, 2, 2}).permute({2, 0, 3, 1});
  OnnxFile file(13, kImage);
  file.initializer("shape", at::tensor({std::int64_t{0}, tokens, std::int64_t{2}, std::int64_t{2}}))
      .initializer("zero", scalar(0))
      .initializer("last", scalar(-1))
      .node("Reshape", {"x", "shape"}, {"r"})
      .node("Transpose", {"r"}, {"t"}, {{"perm", Ints{2, 0, 3, 1}}})
      .node("Gather", {"t", "zero"}, {"q"}, {{"axis", std::int64_t{0}}})
      .node("Gather", {"t", "last"}, {"k"}, {{"axis", std::int64_t{0}}})
      .node("Split", {"t"}, {"s0", "s1"}, {{"axis", std::int64_t{0}}})
      .initializer("axes", at::tensor({std::int64_t{0}}))
      .node("Squeeze", {"s1", "axes"}, {"v"})
      .node("Mul", {"q", "k"}, {"p"})
      .node("Add", {"p", "v"}, {"y"});
  EXPECT_TRUE(at::allclose(file.run(x), (qkv[0] * qkv[1] + qkv[1]).flatten(1), 1e-4, 1e-5));
  // Nothing else reads such a tensor.
  OnnxFile whole(13, kImage);
  whole.node("Transpose", {"x"}, {"t"}, {{"perm", Ints{1, 0, 2, 3}}}).node("Relu", {"t"}, {"y"});
  EXPECT_NE(refusal(whole).find("batch in another dimension"), std::string::npos);
}

// Tokens of all images are a matrix for a Gemm; one token of each image is a row of its own.
TEST(Shapes, RowsOfAllImagesAreAMatrixWhereAnImageHasSeveral) {
  const auto x = image();
  const auto last = x.movedim(1, -1);  // [2, H, W, 4]
  const auto weight = wave({3, 4});
  OnnxFile tokens(13, kImage);
  tokens.initializer("rows", at::tensor({std::int64_t{-1}, std::int64_t{4}}))
      .initializer("back", at::tensor({std::int64_t{-1}, x.size(2) * x.size(3), std::int64_t{3}}))
      .initializer("w", weight)
      .node("Transpose", {"x"}, {"t"}, {{"perm", Ints{0, 2, 3, 1}}})
      .node("Reshape", {"t", "rows"}, {"m"})
      .node("Gemm", {"m", "w"}, {"g"}, {{"transB", std::int64_t{1}}})
      .node("Reshape", {"g", "back"}, {"y"});
  EXPECT_TRUE(at::allclose(tokens.run(x), last.matmul(weight.t()).flatten(1), 1e-4, 1e-5));
  OnnxFile one(13, kImage);
  one.initializer("rows", at::tensor({std::int64_t{-1}, std::int64_t{4}}))
      .initializer("w", weight.t().contiguous())
      .node("GlobalAveragePool", {"x"}, {"p"})
      .node("Transpose", {"p"}, {"t"}, {{"perm", Ints{0, 2, 3, 1}}})
      .node("Reshape", {"t", "rows"}, {"r"})
      .node("MatMul", {"r", "w"}, {"y"});
  EXPECT_TRUE(at::allclose(one.run(x), x.mean({2, 3}).matmul(weight.t()), 1e-4, 1e-5));
}

}  // namespace
}  // namespace zsq::models
