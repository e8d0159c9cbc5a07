// SPDX-License-Identifier: Apache-2.0
// Linear layers, products of two tensors and convolutions along one axis, whose constants may line
// up by coincidence with another dimension, against plain ATen.
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv1d.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>

#include "models/channel_scales.h"
#include "tests/models/operators.h"

namespace zsq::models {
namespace {

// x [N, 4, 9, 7] as tokens [N, 8, 8], after the map is cut to 8 channels of 2 x 4 places.
OnnxFile tokens() {
  OnnxFile file(13, {8, 2, 4});
  file.initializer("s", ints({0, 8, 8})).node("Reshape", {"x", "s"}, {"m"});
  return file.node("Transpose", {"m"}, {"t"}, {{"perm", Ints{0, 2, 1}}});
}
at::Tensor token_image() { return wave({3, 8, 2, 4}); }
at::Tensor as_tokens() { return token_image().flatten(2).transpose(1, 2); }

at::Tensor run_folded(const OnnxFile& file, const at::Tensor& x) {
  const at::NoGradGuard no_grad;
  auto model = file.import();
  fold_channel_scales(model);
  return execute(model.graph, model.parameters, x);
}

TEST(LinearOfTokens, BiasesAndScalesOfEveryShape) {
  const auto w = wave({8, 8}).cos();
  const auto product = at::matmul(as_tokens(), w);
  for (const Ints& shape : {Ints{8}, Ints{1, 8}, Ints{8, 1}, Ints{1, 1, 8}, Ints{1, 8, 1}, Ints{1},
                            Ints{}, Ints{8, 8}, Ints{1, 8, 8}}) {
    SCOPED_TRACE(c10::str(at::IntArrayRef(shape)));
    const auto c = wave(shape) + 2;
    for (const std::string type : {"Add", "Mul"}) {
      auto file = tokens();
      file.initializer("w", w).initializer("c", c);
      file.node("MatMul", {"t", "w"}, {"p"}).node(type, {"c", "p"}, {"y"});
      expect_near(run_folded(file, token_image()), type == "Add" ? product + c : product * c);
    }
  }
}

TEST(LinearOfMaps, WithChannelsLastOfEqualSides) {
  const auto x = wave({2, 5, 5, 5}), w = wave({5, 5}).cos();
  const auto product = at::matmul(x.permute({0, 2, 3, 1}), w);
  for (const Ints& shape : {Ints{5}, Ints{5, 1}, Ints{5, 1, 1}, Ints{1, 1, 1, 5}, Ints{5, 5}}) {
    const auto c = wave(shape) + 2;
    for (const std::string type : {"Add", "Mul"}) {
      OnnxFile file(13, {5, 5, 5});
      file.initializer("w", w).initializer("c", c);
      file.node("Transpose", {"x"}, {"t"}, {{"perm", Ints{0, 2, 3, 1}}})
          .node("MatMul", {"t", "w"}, {"p"})
          .node(type, {"p", "c"}, {"y"});
      expect_near(run_folded(file, x), type == "Add" ? product + c : product * c);
    }
  }
}

// BatchNormalization normalises dimension 1, which are the tokens here.
TEST(LinearOfTokens, BatchNormalizationStaysOnDimensionOne) {
  const auto w = wave({8, 8}).cos(), g = wave({8}), b = g.cos(), m = g.sin(), v = g.abs() + 0.5;
  auto file = tokens();
  file.initializer("w", w).initializer("g", g).initializer("b", b);
  file.initializer("m1", m).initializer("v", v);
  file.node("MatMul", {"t", "w"}, {"p"})
      .node("BatchNormalization", {"p", "g", "b", "m1", "v"}, {"y"});
  const auto model = file.import();
  for (const auto& node : model.graph.nodes) {
    if (!is<BatchNorm>(node)) continue;
    EXPECT_FALSE(is<Linear>(model.graph[node.inputs[0]])) << "must not be folded into the layer";
  }
  expect_near(file.run(token_image()),
              at::batch_norm(at::matmul(as_tokens(), w), g, b, m, v, false, 0, 1e-5, false));
}

OnnxFile gemm(std::int64_t batch, const at::Tensor& c) {
  OnnxFile file(13, {4, 2, 1});
  file.file.graph.inputs[0].shape[0].value = batch;
  file.initializer("w", wave({8, 4})).initializer("c", c);
  return file.node("Flatten", {"x"}, {"f"}).node("Gemm", {"f", "w", "c"}, {"y"});
}

TEST(Gemm, CInEveryShape) {
  const auto x = wave({4, 4, 2, 1}), product = x.flatten(1).matmul(wave({8, 4}));
  for (const Ints& shape : {Ints{}, Ints{1}, Ints{4}, Ints{1, 4}, Ints{1, 1}})
    expect_near(gemm(-1, wave(shape) + 1).run(x), product + wave(shape) + 1);
  const auto rows = wave({4, 1}) + 1;
  EXPECT_NE(refusal(gemm(-1, rows)).find("batch"), std::string::npos);
  EXPECT_NE(refusal(gemm(4, rows)).find("each image"), std::string::npos);
  EXPECT_NE(refusal(gemm(4, wave({4, 4}))).find("each image"), std::string::npos);
  const auto equal = wave({1, 4}).expand({4, 4}).contiguous();
  expect_near(gemm(4, equal).run(x), product + equal);
}

TEST(Gemm, WithAnActivationForC) {
  OnnxFile file(13, {4, 2, 1});
  file.initializer("w", wave({8, 8}))
      .node("Flatten", {"x"}, {"f"})
      .node("Gemm", {"f", "w", "f"}, {"y"}, {{"alpha", 0.5F}, {"beta", 3.0F}});
  const auto x = wave({3, 4, 2, 1}), f = x.flatten(1);
  expect_near(file.run(x), 0.5 * f.matmul(wave({8, 8})) + 3 * f);
}

TEST(MatMul, OfTwoTensorsOfEachImage) {
  auto file = tokens();
  file.initializer("k", wave({1, 8, 5}))
      .node("MatMul", {"t", "m"}, {"a"})
      .node("Softmax", {"a"}, {"w"}, {{"axis", std::int64_t{-1}}})
      .node("MatMul", {"w", "t"}, {"o"})
      .node("MatMul", {"o", "k"}, {"y"});
  const auto t = as_tokens();
  const auto weights = at::softmax(at::matmul(t, t.transpose(1, 2)), -1);
  expect_near(file.run(token_image()), at::matmul(at::matmul(weights, t), wave({8, 5})));
}

TEST(MatMul, WithAConstantOnTheLeftAndAVector) {
  auto left = tokens();
  left.initializer("c", wave({3, 8})).node("MatMul", {"c", "t"}, {"y"});
  expect_near(left.run(token_image()), at::matmul(wave({3, 8}), as_tokens()));
  auto vector = tokens();
  vector.initializer("v", wave({8})).node("MatMul", {"t", "v"}, {"y"});
  expect_near(vector.run(token_image()), at::matmul(as_tokens(), wave({8})));
}

// Decoders of boxes: no layers of the network, so that those before the Softmax are its last.
TEST(Expectation, IsASumOfProductsAndNoLayer) {
  const auto expect_sum = [](const OnnxFile& file, const at::Tensor& x, const at::Tensor& y) {
    expect_near(file.run(x), y);
    for (const auto& node : file.import().graph.nodes)
      EXPECT_FALSE(is<Conv2d>(node) || is<Linear>(node)) << node.name;
  };
  const auto map = wave({2, 8, 3, 2});
  const auto of_map = at::softmax(map, 1).mul(wave({8}).view({8, 1, 1})).sum(1, true);
  OnnxFile convolution(13, {8, 3, 2});
  convolution.initializer("w", wave({1, 8, 1, 1}))
      .node("Softmax", {"x"}, {"p"}, {{"axis", std::int64_t{1}}})
      .node("Conv", {"p", "w"}, {"y"});
  expect_sum(convolution, map, of_map);
  const auto tokens_of = at::softmax(as_tokens(), -1).matmul(wave({8}));
  auto vector = tokens();
  vector.initializer("v", wave({8}))
      .node("Softmax", {"t"}, {"p"})
      .node("MatMul", {"p", "v"}, {"y"});
  expect_sum(vector, token_image(), tokens_of);
  auto column = tokens();
  column.initializer("v", wave({8, 1})).node("Softmax", {"t"}, {"p"});
  column.node("MatMul", {"p", "v"}, {"y"});
  expect_sum(column, token_image(), tokens_of.unsqueeze(-1));
}

TEST(MatMul, OfTheImagesOfABatchIsRefused) {
  OnnxFile file(13, {4, 2, 1});
  file.node("Flatten", {"x"}, {"f"})
      .node("Transpose", {"f"}, {"t"}, {{"perm", Ints{0, 1}}})
      .node("MatMul", {"f", "t"}, {"y"});
  EXPECT_NE(refusal(file).find("images of the batch"), std::string::npos);
  OnnxFile left(13, {4, 2, 1});
  left.initializer("w", wave({5, 8})).node("Flatten", {"x"}, {"f"});
  left.node("MatMul", {"w", "f"}, {"y"});
  EXPECT_NE(refusal(left).find("along the batch"), std::string::npos);
}

TEST(Conv1d, OfEveryWindow) {
  const auto x = wave({2, 8, 2, 4}), row = x.flatten(2), w = wave({4, 4, 3}), b = wave({4});
  OnnxFile file(13, {8, 2, 4});
  file.initializer("s", ints({0, 8, 8})).initializer("w", w).initializer("b", b);
  file.node("Reshape", {"x", "s"}, {"m"})
      .node("Conv", {"m", "w", "b"}, {"y"},
            {{"strides", Ints{2}},
             {"pads", Ints{2, 2}},
             {"dilations", Ints{2}},
             {"group", std::int64_t{2}}});
  expect_near(file.run(x), at::conv1d(row, w, b, 2, 2, 2, 2));
  OnnxFile same(13, {8, 2, 4});
  same.initializer("s", ints({0, 8, 8})).initializer("w", wave({4, 8, 3}));
  same.node("Reshape", {"x", "s"}, {"m"})
      .node("Conv", {"m", "w"}, {"y"}, {{"auto_pad", std::string("SAME_UPPER")}});
  expect_near(same.run(x), at::conv1d(row, wave({4, 8, 3}), {}, 1, 1));
}

}  // namespace
}  // namespace zsq::models
