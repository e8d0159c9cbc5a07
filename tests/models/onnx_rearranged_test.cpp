// SPDX-License-Identifier: Apache-2.0
// Blocks of pixels, transposed convolutions, changes of size and pads, against plain ATen.
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv_transpose2d.h>
#include <ATen/ops/pad.h>
#include <ATen/ops/pixel_shuffle.h>
#include <ATen/ops/pixel_unshuffle.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/upsample_bicubic2d.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/upsample_nearest2d.h>

#include "tests/models/operators.h"

namespace zsq::models {
namespace {

TEST(DepthToSpace, BothOrders) {
  for (const bool rows : {false, true}) {
    OnnxFile file(13, kImage);
    file.node("DepthToSpace", {"x"}, {"y"},
              {{"blocksize", std::int64_t{2}}, {"mode", std::string(rows ? "CRD" : "DCR")}});
    // One channel comes out, so that the orders are the same.
    expect_near(file.run(image()), at::pixel_shuffle(image(), 2));
  }
  OnnxFile wide(13, {8, 3, 2});
  const auto x = wave({2, 8, 3, 2});
  wide.node("DepthToSpace", {"x"}, {"y"}, {{"blocksize", std::int64_t{2}}});
  expect_near(
      wide.run(x),
      at::pixel_shuffle(x.reshape({2, 4, 2, 3, 2}).transpose(1, 2).reshape({2, 8, 3, 2}), 2));
}

TEST(SpaceToDepth, PutsTheBlockBeforeTheChannels) {
  OnnxFile file(13, {3, 4, 6});
  const auto x = wave({2, 3, 4, 6});
  file.node("SpaceToDepth", {"x"}, {"y"}, {{"blocksize", std::int64_t{2}}});
  const auto channels_first = at::pixel_unshuffle(x, 2).reshape({2, 3, 4, 2, 3});
  expect_near(file.run(x), channels_first.transpose(1, 2).reshape({2, 12, 2, 3}));
}

struct Transposed {
  Ints kernel, stride, pads, extra, dilation;
  std::int64_t groups;
};

TEST(ConvTranspose, IsAConvolutionThatIsSpreadAndCropped) {
  const Transposed all[]{
      {{2, 2}, {2, 2}, {0, 0}, {0, 0}, {1, 1}, 1}, {{4, 4}, {2, 2}, {1, 1}, {0, 0}, {1, 1}, 1},
      {{3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, 2}, {{3, 2}, {1, 3}, {0, 1}, {0, 2}, {2, 3}, 2},
      {{1, 5}, {3, 2}, {0, 4}, {2, 1}, {1, 1}, 1}, {{5, 3}, {1, 1}, {2, 2}, {0, 0}, {1, 1}, 4}};
  for (const auto& one : all) {
    const auto w = wave({4, 3, one.kernel[0], one.kernel[1]}), b = wave({3 * one.groups});
    OnnxFile file(13, kImage);
    file.initializer("w", w).initializer("b", b).node(
        "ConvTranspose", {"x", "w", "b"}, {"y"},
        {{"strides", one.stride},
         {"pads", Ints{one.pads[0], one.pads[1], one.pads[0], one.pads[1]}},
         {"output_padding", one.extra},
         {"dilations", one.dilation},
         {"group", one.groups}});
    expect_near(file.run(image()), at::conv_transpose2d(image(), w, b, one.stride, one.pads,
                                                        one.extra, one.groups, one.dilation));
    EXPECT_EQ(count<Conv2d>(file.import()), 1);
  }
}

TEST(ConvTranspose, BatchNormalizationAfterItActsOnTheConvolution) {
  const auto w = wave({4, 3, 3, 3}), g = wave({3}), m = wave({3}) * 2, v = wave({3}).abs() + 1;
  OnnxFile file(13, kImage);
  file.initializer("w", w).initializer("g", g).initializer("m", m).initializer("v", v);
  file.node("ConvTranspose", {"x", "w"}, {"c"},
            {{"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}})
      .node("BatchNormalization", {"c", "g", "m", "m", "v"}, {"y"});
  const auto c = at::conv_transpose2d(image(), w, {}, {2, 2}, {1, 1});
  expect_near(file.run(image()), at::batch_norm(c, g, m, m, v, false, 0, 1e-5, false));
  const auto model = file.import();
  for (const auto& node : model.graph.nodes) {
    if (is<BatchNorm>(node)) {
      EXPECT_TRUE(is<Conv2d>(model.graph[node.inputs[0]]));
    }
  }
}

TEST(ConvTranspose, AnAskedOutputDividesThePads) {
  const auto w = wave({4, 3, 4, 4});
  for (const bool upper : {false, true}) {
    OnnxFile file(13, kImage);
    Attributes attributes{{"strides", Ints{2, 2}}, {"output_shape", Ints{17, 13}}};
    if (upper) attributes.push_back({"auto_pad", std::string("SAME_UPPER")});
    file.initializer("w", w).node("ConvTranspose", {"x", "w"}, {"y"}, attributes);
    // Of 20 x 16, three rows and columns are cropped: two at the start, or one (SAME_UPPER).
    const auto whole = at::conv_transpose2d(image(), w, {}, {2, 2});
    const std::int64_t start = upper ? 1 : 2;
    expect_near(file.run(image()), whole.slice(2, start, start + 17).slice(3, start, start + 13));
  }
}

TEST(Lrn, DividesByAPowerOfTheSquaresAround) {
  OnnxFile file(13, kImage);
  file.node("LRN", {"x"}, {"y"},
            {{"size", std::int64_t{3}}, {"alpha", 0.5F}, {"beta", 0.75F}, {"bias", 2.0F}});
  auto squares = image().square();
  auto sum = squares.clone();
  sum.slice(1, 1).add_(squares.slice(1, 0, 3));
  sum.slice(1, 0, 3).add_(squares.slice(1, 1));
  expect_near(file.run(image()), image() / (sum * (0.5 / 3) + 2).pow(0.75));
}

OnnxFile resize(const Ints& sizes, Attributes attributes) {
  OnnxFile file(18, kImage);
  attributes.push_back({"axes", Ints{2, 3}});
  file.initializer("s", ints(sizes)).node("Resize", {"x", "", "", "s"}, {"y"}, attributes);
  return file;
}

TEST(Resize, LinearCubicAndNearestOfAnySize) {
  const Attributes linear{{"mode", std::string("linear")}};
  expect_near(resize({5, 13}, linear).run(image()),
              at::upsample_bilinear2d(image(), {5, 13}, false));
  expect_near(resize({5, 13}, {{"mode", std::string("cubic")},
                               {"coordinate_transformation_mode", std::string("align_corners")}})
                  .run(image()),
              at::upsample_bicubic2d(image(), {5, 13}, true));
  expect_near(resize({5, 13}, {{"coordinate_transformation_mode", std::string("asymmetric")},
                               {"nearest_mode", std::string("floor")}})
                  .run(image()),
              at::upsample_nearest2d(image(), {5, 13}));
}

// Height 9 and width 7 into 18 x 21: the smaller factor is 2, the larger 3.
TEST(Resize, KeepsTheAspectRatioIfAsked) {
  for (const bool larger : {false, true}) {
    const std::int64_t factor = larger ? 3 : 2;
    const auto file =
        resize({18, 21},
               {{"mode", std::string("linear")},
                {"keep_aspect_ratio_policy", std::string(larger ? "not_smaller" : "not_larger")}});
    expect_near(file.run(image()),
                at::upsample_bilinear2d(image(), {9 * factor, 7 * factor}, false));
  }
}

TEST(Resize, OldFilesRoundUpWhereASideShrinks) {
  OnnxFile file(10, kImage);
  file.initializer("s", at::tensor({1.0F, 1.0F, 0.5F, 2.0F}))
      .node("Resize", {"x", "s"}, {"y"}, {{"mode", std::string("nearest")}});
  const auto rows = image().index_select(2, ints({0, 2, 4, 6}));
  expect_near(file.run(image()), rows.repeat_interleave(2, 3));
  OnnxFile attribute(7, kImage);
  attribute.node("Upsample", {"x"}, {"y"},
                 {{"mode", std::string("nearest")}, {"scales", std::vector<float>{1, 1, 2, 3}}});
  expect_near(attribute.run(image()), image().repeat_interleave(2, 2).repeat_interleave(3, 3));
}

TEST(Resize, WhatNoRuntimeSharesIsRefusedByName) {
  const auto says = [](const char* attribute, const char* value, const char* part) {
    const auto file = resize({5, 13}, {{attribute, std::string(value)}});
    EXPECT_NE(refusal(file).find(part), std::string::npos) << refusal(file);
  };
  says("coordinate_transformation_mode", "tf_crop_and_resize", "'tf_crop_and_resize'");
  says("mode", "area", "mode 'area'");
}

TEST(Pad, ModesOfHeightAndWidthAndCrops) {
  const std::pair<const char*, const char*> modes[]{{"constant", "constant"},
                                                    {"reflect", "reflect"},
                                                    {"edge", "replicate"},
                                                    {"wrap", "circular"}};
  for (const auto& [mode, name] : modes) {
    OnnxFile file(19, kImage);
    file.initializer("p", ints({0, 0, 2, 1, 0, 0, 0, 3}))
        .node("Pad", {"x", "p"}, {"y"}, {{"mode", std::string(mode)}});
    expect_near(file.run(image()), at::pad(image(), {1, 3, 2, 0}, name));
  }
  OnnxFile crop(19, kImage);
  crop.initializer("p", ints({0, 0, -2, 1, 0, 0, 1, -3}))
      .node("Pad", {"x", "p"}, {"y"}, {{"mode", std::string("reflect")}});
  expect_near(crop.run(image()),
              at::pad(image().slice(2, 2).slice(3, 0, 4), {1, 0, 0, 1}, "reflect"));
}

TEST(Pad, ReflectionsBeyondTheSideAreRefused) {
  OnnxFile file(13, kImage);
  file.initializer("p", ints({0, 0, 0, 7, 0, 0, 0, 0}))
      .node("Pad", {"x", "p"}, {"y"}, {{"mode", std::string("reflect")}});
  EXPECT_NE(refusal(file).find("beyond a side of 7 pixels"), std::string::npos);
}

TEST(AveragePool, DilatedWindowsAreConvolutions) {
  for (const std::int64_t include : {0, 1}) {
    OnnxFile file(19, kImage);
    file.node("AveragePool", {"x"}, {"y"},
              {{"kernel_shape", Ints{2, 2}},
               {"dilations", Ints{2, 3}},
               {"pads", Ints{1, 0, 0, 1}},
               {"count_include_pad", include}});
    const auto sums = [&](const at::Tensor& x) {
      const auto p = at::pad(x, {0, 1, 1, 0});
      const auto rows = p.slice(2, 0, 8) + p.slice(2, 2, 10);
      return rows.slice(3, 0, 5) + rows.slice(3, 3, 8);
    };
    const auto taps = include ? sums(image()) * 0 + 4 : sums(image() * 0 + 1);
    expect_near(file.run(image()), sums(image()) / taps);
  }
}

// An assignment of PaddlePaddle: a dimension before the batch, a sum with 0, and back.
TEST(BeforeTheBatch, ADimensionComesAndGoes) {
  const auto around = [](const std::string& type, float number, bool first) {
    OnnxFile file(13, kImage);
    file.initializer("axes", at::tensor({std::int64_t{0}}))
        .initializer("number", at::tensor({number}))
        .node("Relu", {"x"}, {"r"})
        .node("Unsqueeze", {"r", "axes"}, {"u"})
        .node(type, first ? Names{"number", "u"} : Names{"u", "number"}, {"s"})
        .node("Squeeze", {"s", "axes"}, {"y"});
    return file;
  };
  const auto relu = at::relu(image());
  const auto same = around("Add", 0, false);
  expect_near(same.run(image()), relu);
  const auto graph = same.import().graph;
  EXPECT_TRUE(is<Clip>(graph[graph.output]) || is<Flatten>(graph[graph.output]));
  expect_near(around("Mul", 1, true).run(image()), relu);
  expect_near(around("Add", 0.5F, true).run(image()), relu + 0.5);
  expect_near(around("Mul", -2, false).run(image()), relu * -2);
  OnnxFile left(13, kImage);
  left.initializer("axes", at::tensor({std::int64_t{0}})).node("Unsqueeze", {"x", "axes"}, {"y"});
  EXPECT_NE(refusal(left).find("batch"), std::string::npos);
}

}  // namespace
}  // namespace zsq::models
