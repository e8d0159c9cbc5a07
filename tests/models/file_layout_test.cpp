// SPDX-License-Identifier: Apache-2.0
// Files that take images with channels last: the graph takes them first, and preprocessing inside
// the file means the same pixels.
#include "models/file_layout.h"

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv2d.h>

#include "models/tail.h"
#include "tests/models/operators.h"

namespace zsq::models {
namespace {

const Attributes kChannelsFirst{{"perm", Ints{0, 3, 1, 2}}};

OnnxFile with_input(const Ints& shape) {
  OnnxFile file(13, shape);
  return file.initializer("w", wave({2, 3, 3, 3}));
}

at::Tensor pixels() { return wave({2, 8, 6, 3}); }

void expect_channels_last(const OnnxFile& file, const at::Tensor& expected) {
  const at::NoGradGuard no_grad;
  const auto model = file.import();
  EXPECT_TRUE(model.graph.signature.channels_last);
  EXPECT_EQ(model.graph.input_shape, (std::array<std::int64_t, 3>{3, 8, 6}));
  EXPECT_EQ(count<Transpose>(model), 0);
  const auto x = from_file_input(model.graph, pixels());
  ASSERT_EQ(x.sizes(), (Ints{2, 3, 8, 6}));
  expect_near(execute(model.graph, model.parameters, x), expected);
}

TEST(ChannelsLast, BehindATransposition) {
  auto file = with_input({8, 6, 3});
  file.node("Transpose", {"x"}, {"t"}, kChannelsFirst).node("Conv", {"t", "w"}, {"y"});
  expect_channels_last(file, at::conv2d(pixels().permute({0, 3, 1, 2}), wave({2, 3, 3, 3})));
}

TEST(ChannelsLast, BehindThePreprocessing) {
  const auto mean = wave({3}), deviation = wave({3}).abs() + 0.5;
  auto file = with_input({8, 6, 3});
  file.initializer("m", mean)
      .initializer("d", deviation)
      .initializer("k", scalar(255))
      .node("Div", {"x", "k"}, {"a"})
      .node("Sub", {"a", "m"}, {"b"})
      .node("Div", {"b", "d"}, {"c"})
      .node("Transpose", {"c"}, {"t"}, kChannelsFirst)
      .node("Conv", {"t", "w"}, {"y"});
  const auto x = ((pixels() / 255 - mean) / deviation).permute({0, 3, 1, 2});
  expect_channels_last(file, at::conv2d(x, wave({2, 3, 3, 3})));
}

TEST(ChannelsLast, BehindAPad) {
  auto file = with_input({8, 6, 3});
  file.initializer("p", ints({0, 1, 0, 0, 0, 2, 3, 0}))
      .node("Pad", {"x", "p"}, {"a"})
      .node("Transpose", {"a"}, {"t"}, kChannelsFirst)
      .node("Conv", {"t", "w"}, {"y"});
  const auto x = at::constant_pad_nd(pixels().permute({0, 3, 1, 2}), {0, 3, 1, 2});
  expect_channels_last(file, at::conv2d(x, wave({2, 3, 3, 3})));
}

TEST(ChannelsLast, OpenSidesAreGiven) {
  auto file = with_input({-1, -1, 3});
  file.node("Transpose", {"x"}, {"t"}, kChannelsFirst).node("Conv", {"t", "w"}, {"y"});
  LoadOptions options;
  options.image_size = {8, 6};
  EXPECT_EQ(file.import(options).graph.input_shape, (std::array<std::int64_t, 3>{3, 8, 6}));
}

TEST(ChannelsFirst, StayWhereTheNetworkTransposesLater) {
  auto file = with_input({3, 8, 6});
  file.node("Conv", {"x", "w"}, {"c"})
      .node("Transpose", {"c"}, {"t"}, {{"perm", Ints{0, 2, 3, 1}}})
      .node("Relu", {"t"}, {"r"})
      .node("Transpose", {"r"}, {"y"}, kChannelsFirst);
  const auto model = file.import();
  EXPECT_FALSE(model.graph.signature.channels_last);
  EXPECT_TRUE(from_file_input(model.graph, wave({2, 3, 8, 6})).equal(wave({2, 3, 8, 6})));
}

// As torchvision's detectors: normalised and padded, then one of a list, then in a batch.
TEST(OneImage, WithoutABatch) {
  OnnxFile file(13, {});
  for (const std::int64_t size : {3, 8, 6}) file.file.graph.inputs[0].shape.push_back({size, ""});
  file.file.graph.inputs[0].shape.erase(file.file.graph.inputs[0].shape.begin());
  const auto mean = wave({3, 1, 1}), deviation = wave({3, 1, 1}).abs() + 0.5;
  const Attributes sides{{"kernel_shape", Ints{3, 3}}};
  file.initializer("w", wave({2, 3, 3, 3}))
      .initializer("m", mean)
      .initializer("d", deviation)
      .initializer("p", ints({0, 0, 1, 0, 2, 0}))
      .initializer("zero", ints({0}))
      .initializer("first", at::scalar_tensor(0, at::kLong))
      .node("Sub", {"x", "m"}, {"a"})
      .node("Div", {"a", "d"}, {"b"})
      .node("Unsqueeze", {"b", "zero"}, {"list"})
      .node("Gather", {"list", "first"}, {"one"}, {{"axis", std::int64_t{0}}})
      .node("Pad", {"one", "p"}, {"padded"})
      .node("Unsqueeze", {"padded", "zero"}, {"batch"})
      .node("Conv", {"batch", "w"}, {"y"}, sides);
  const auto model = file.import();
  EXPECT_TRUE(model.graph.signature.one_image);
  EXPECT_EQ(model.graph.input_shape, (std::array<std::int64_t, 3>{3, 8, 6}));
  EXPECT_EQ(count<Slice>(model) + count<Reshape>(model), 0);
  const at::NoGradGuard no_grad;
  const auto x = wave({3, 8, 6});
  const auto image = from_file_input(model.graph, x);
  ASSERT_EQ(image.sizes(), (Ints{1, 3, 8, 6}));
  const auto y = at::conv2d(at::constant_pad_nd((x - mean) / deviation, {1, 0, 0, 2}).unsqueeze(0),
                            wave({2, 3, 3, 3}));
  expect_near(execute(model.graph, model.parameters, image), y.flatten(1));
}

// A branch reads what lies around it: a value of the graph and a constant.
TEST(Tail, KeepsBranchesWithWhatTheyRead) {
  OnnxFile file(13, {3, 8, 6});
  file.initializer("w", wave({2, 3, 3, 3}))
      .initializer("k", scalar(2))
      .node("Conv", {"x", "w"}, {"c"})
      .node("Relu", {"c"}, {"r"})
      .node("NonZero", {"r"}, {"places"})
      .node("Size", {"places"}, {"found"})
      .node("Cast", {"found"}, {"any"}, {{"to", std::int64_t{9}}})
      .node("If", {"any"}, {"y"},
            {{"then_branch", formats::onnx::Subgraph{"1", {"c", "k"}, {"inside"}}}});
  const auto model = file.import();
  const auto& tail = *model.graph.signature.tail;
  EXPECT_EQ(operators_of(tail), "Cast, Flatten, If, NonZero, Size");
  ASSERT_EQ(tail.constants.size(), 1U);
  EXPECT_EQ(tail.constants[0].first, "k");
  std::vector<std::string> read;
  for (const auto& output : model.graph.signature.kind.outputs()) read.push_back(output.name);
  EXPECT_EQ(read, (std::vector<std::string>{"r", "c"}));
}

// The state that a loop begins with, a row for each image: the batch goes through 32-bit sizes.
TEST(Tail, MakesRowsForTheBatchItGets) {
  OnnxFile file(13, {3, 8, 6});
  const auto cast = [](std::int64_t type) { return Attributes{{"to", type}}; };
  file.initializer("w", wave({2, 3, 3, 3}))
      .initializer("zero", ints({0}))
      .initializer("one", ints({1}))
      .initializer("width", ints({4}))
      .node("Conv", {"x", "w"}, {"c"})
      .node("Shape", {"c"}, {"sizes"})
      .node("Cast", {"sizes"}, {"narrow"}, cast(6))
      .node("Slice", {"narrow", "zero", "one"}, {"batch"})
      .node("Cast", {"batch"}, {"wide"}, cast(7))
      .node("Concat", {"wide", "width"}, {"shape"}, {{"axis", std::int64_t{0}}})
      .node("ConstantOfShape", {"shape"}, {"state"})
      .node("Loop", {"one", "", "state"}, {"y"},
            {{"body", formats::onnx::Subgraph{"1", {"c"}, {"inside"}}}});
  const auto model = file.import();
  const auto& tail = *model.graph.signature.tail;
  EXPECT_EQ(operators_of(tail), "Cast, Concat, ConstantOfShape, Flatten, Loop, Shape, Slice");
  for (const auto& [name, value] : tail.constants) EXPECT_NE(name, "state");
  EXPECT_EQ(model.graph.signature.kind.outputs().size(), 1U);
}

}  // namespace
}  // namespace zsq::models
