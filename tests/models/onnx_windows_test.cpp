// SPDX-License-Identifier: Apache-2.0
// Convolutions, paddings and poolings in the forms that exporters write, against plain ATen.
#include <ATen/ops/avg_pool1d.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/max_pool1d.h>
#include <ATen/ops/max_pool2d.h>

#include <limits>

#include "tests/models/operators.h"

namespace zsq::models {
namespace {

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

TEST(Pools, OfSignals) {
  const auto x = wave({2, 4, 20});
  const auto of = [&](const std::string& type, const Attributes& attributes) {
    return OnnxFile(17, {4, 20}).node(type, {"x"}, {"y"}, attributes).run(x.unsqueeze(2));
  };
  const Attributes window{{"kernel_shape", Ints{4}}, {"strides", Ints{3}}, {"pads", Ints{1, 2}}};
  const auto padded = at::constant_pad_nd(x, {1, 2}, -1e9);
  expect_near(of("MaxPool", window), at::max_pool1d(padded, 4, 3));
  expect_near(of("AveragePool", {{"kernel_shape", Ints{4}}, {"strides", Ints{3}}}),
              at::avg_pool1d(x, 4, 3));
  expect_near(of("GlobalAveragePool", {}), x.mean(2, true));
}

}  // namespace
}  // namespace zsq::models
