// SPDX-License-Identifier: Apache-2.0
// Files that take images with channels last: the graph takes them first, and preprocessing inside
// the file means the same pixels.
#include "models/file_layout.h"

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv2d.h>

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

}  // namespace
}  // namespace zsq::models
