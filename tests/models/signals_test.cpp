// SPDX-License-Identifier: Apache-2.0
// Networks of signals [N, C, L], as maps of height 1.
#include "models/onnx/signals.h"

#include <ATen/ops/batch_norm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv1d.h>
#include <ATen/ops/conv_transpose1d.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/max_pool1d.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/upsample_linear1d.h>

#include "models/bn_statistics.h"
#include "models/file_layout.h"
#include "tests/models/operators.h"

namespace zsq::models {
namespace {

at::Tensor signals() { return wave({3, 4, 30}); }

at::Tensor run(const Model& model) {
  const at::NoGradGuard no_grad;
  return as_file_output(
      model.graph, execute(model.graph, model.parameters, from_file_input(model.graph, signals())));
}

// In [0.5, 1.5].
at::Tensor positive(const std::vector<std::int64_t>& shape) { return wave(shape) * 0.5 + 1; }

TEST(Signals, AreMapsOfHeightOne) {
  OnnxFile file(13, {4, 30});
  file.initializer("w", wave({6, 4, 5})).node("Conv", {"x", "w"}, {"c"}).node("Relu", {"c"}, {"y"});
  const auto model = file.import();
  EXPECT_TRUE(model.graph.signature.one_dimensional);
  EXPECT_EQ(model.graph.input_shape, (std::array<std::int64_t, 3>{4, 1, 30}));
  expect_near(run(model), at::relu(at::conv1d(signals(), wave({6, 4, 5}))).flatten(1));
}

// What is folded and fused stands beside its layer, as in a network of images.
TEST(Signals, HoldNoReshapeBetweenLayers) {
  OnnxFile file(13, {4, 30});
  const Attributes window{{"kernel_shape", Ints{2}}, {"strides", Ints{2}}};
  file.initializer("w", wave({6, 4, 5}))
      .initializer("v", wave({6, 6, 3}))
      .initializer("u", wave({12, 12, 1}))
      .initializer("pads", ints({0, 0, 2, 0, 0, 0}))
      .initializer("first", ints({1}))
      .initializer("last", ints({9}))
      .initializer("length", ints({2}));
  for (const char* role : {"gamma", "beta", "mean", "variance"})
    file.initializer(role, positive({6}));
  file.node("Conv", {"x", "w"}, {"a"})
      .node("BatchNormalization", {"a", "gamma", "beta", "mean", "variance"}, {"n"})
      .node("Relu", {"n"}, {"r"})
      .node("MaxPool", {"r"}, {"m"}, window)
      .node("Pad", {"m", "pads"}, {"p"})
      .node("Conv", {"p", "v"}, {"b"})
      .node("Add", {"b", "m"}, {"sum"})
      .node("Concat", {"sum", "m"}, {"both"}, {{"axis", std::int64_t{1}}})
      .node("ReduceMean", {"both"}, {"mean_of"}, {{"axes", Ints{2}}})
      .node("Conv", {"mean_of", "u"}, {"g"})
      .node("Sigmoid", {"g"}, {"gate"})
      .node("Mul", {"both", "gate"}, {"gated"})
      .node("Slice", {"gated", "first", "last", "length"}, {"y"});
  const auto model = file.import();
  EXPECT_EQ(count<Reshape>(model), 0);
  EXPECT_EQ(count<GlobalAvgPool>(model), 1);
  EXPECT_EQ(count<Pad>(model), 0);  // the convolution's own
  EXPECT_EQ(convolutions_without_batch_norm(model.graph).size(), 2U);
  const auto c = positive({6});
  const auto r = at::relu(
      at::batch_norm(at::conv1d(signals(), wave({6, 4, 5})), c, c, c, c, false, 0, 1e-5, false));
  const auto m = at::max_pool1d(r, 2, 2);
  const auto b = at::conv1d(at::constant_pad_nd(m, {2, 0}), wave({6, 6, 3}));
  const auto both = at::cat({b + m, m}, 1);
  const auto gate = at::sigmoid(at::conv1d(both.mean(2, true), wave({12, 12, 1})));
  expect_near(run(model), (both * gate).slice(2, 1, 9).flatten(1));
}

// Up again, by a transposed convolution that is cropped and by interpolation.
TEST(Signals, GoUpAsMaps) {
  OnnxFile file(13, {4, 30});
  file.initializer("w", wave({4, 6, 4})).initializer("b", wave({6}));
  file.node("ConvTranspose", {"x", "w", "b"}, {"y"},
            {{"strides", Ints{2}}, {"pads", Ints{1, 0}}, {"output_padding", Ints{1}}});
  const auto up = at::conv_transpose1d(signals(), wave({4, 6, 4}), wave({6}), 2, 0, 1);
  expect_near(run(file.import()), up.slice(2, 1).flatten(1));

  OnnxFile resized(13, {4, 30});
  resized.initializer("scales", at::tensor({1.0F, 1.0F, 2.5F}))
      .initializer("sizes", ints({4, 75}))
      .initializer("zero", ints({0}))
      .initializer("one", ints({1}))
      .node("Resize", {"x", "", "scales"}, {"l"}, {{"mode", std::string("linear")}})
      .node("Shape", {"x"}, {"shape"})
      .node("Slice", {"shape", "zero", "one"}, {"images"})
      .node("Concat", {"images", "sizes"}, {"to"}, {{"axis", std::int64_t{0}}})
      .node("Resize", {"x", "", "", "to"}, {"s"}, {{"mode", std::string("linear")}})
      .node("Sub", {"l", "s"}, {"nothing"})
      .node("Add", {"s", "nothing"}, {"y"});
  expect_near(run(resized.import()), at::upsample_linear1d(signals(), {75}, false).flatten(1));

  OnnxFile old(8, {4, 30});
  old.node("Upsample", {"x"}, {"y"}, {{"scales", std::vector<float>{1, 1, 2}}});
  const auto twice = old.import();
  EXPECT_EQ(count<Resize>(twice), 1);
  expect_near(run(twice), signals().repeat_interleave(2, 2).flatten(1));
}

// Other reductions, and what only a tensor [N, C, L] has.
TEST(Signals, KeepWhatIsNoMap) {
  OnnxFile file(13, {4, 30});
  file.initializer("w", wave({6, 4, 5}))
      .initializer("k", wave({26, 3}))
      .node("Conv", {"x", "w"}, {"c"})
      .node("ReduceMax", {"c"}, {"most"}, {{"axes", Ints{2}}, {"keepdims", std::int64_t{1}}})
      .node("Sub", {"c", "most"}, {"d"})
      .node("MatMul", {"d", "k"}, {"y"});
  const auto c = at::conv1d(signals(), wave({6, 4, 5}));
  expect_near(run(file.import()), at::matmul(c - c.amax(2, true), wave({26, 3})).flatten(1));
}

}  // namespace
}  // namespace zsq::models
