// SPDX-License-Identifier: Apache-2.0
// Reductions, Softmax and normalisations of one image, against plain ATen.
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/group_norm.h>
#include <ATen/ops/instance_norm.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/softmax.h>

#include "tests/models/operators.h"

namespace zsq::models {
namespace {

using Value = at::Tensor (*)(const at::Tensor&, const Ints&, bool);
const std::pair<const char*, Value> kReductions[]{
    {"ReduceMean", [](const at::Tensor& x, const Ints& a, bool k) { return x.mean(a, k); }},
    {"ReduceSum", [](const at::Tensor& x, const Ints& a, bool k) { return x.sum(a, k); }},
    {"ReduceMax", [](const at::Tensor& x, const Ints& a, bool k) { return x.amax(a, k); }},
    {"ReduceMin", [](const at::Tensor& x, const Ints& a, bool k) { return x.amin(a, k); }},
    {"ReduceL1", [](const at::Tensor& x, const Ints& a, bool k) { return x.abs().sum(a, k); }},
    {"ReduceL2",
     [](const at::Tensor& x, const Ints& a, bool k) { return x.square().sum(a, k).sqrt(); }},
    {"ReduceSumSquare",
     [](const at::Tensor& x, const Ints& a, bool k) { return x.square().sum(a, k); }},
    {"ReduceLogSumExp",
     [](const at::Tensor& x, const Ints& a, bool k) { return at::logsumexp(x, a, k); }},
    {"ReduceProd",
     [](const at::Tensor& x, const Ints& a, bool k) {
       auto y = x;
       for (auto axis = a.rbegin(); axis != a.rend(); ++axis) y = y.prod(*axis, k);
       return y;
     }},
};

// What reads constants alone is calculated once.
TEST(Reductions, AndSoftmaxOfConstantsAreFolded) {
  const auto c = image().slice(0, 0, 1).squeeze(0);  // [C, H, W]
  const auto folds = [&](OnnxFile& file, const at::Tensor& value) {
    file.node("Add", {"x", "d"}, {"y"});
    EXPECT_EQ(file.import().graph.nodes.size(), 4U) << "input, constant, sum and its row";
    expect_near(file.run(image()), image() + value);
  };
  OnnxFile softmax(13, kImage), log_softmax(13, kImage), rows(11, kImage), sum(18, kImage),
      all(18, kImage), padded(13, kImage);
  softmax.initializer("c", c).node("Softmax", {"c"}, {"d"}, {{"axis", std::int64_t{1}}});
  folds(softmax, at::softmax(c, 1));
  log_softmax.initializer("c", c).node("LogSoftmax", {"c"}, {"d"});
  folds(log_softmax, at::log_softmax(c, -1));
  // Up to opset 12 over all dimensions from the axis on.
  rows.initializer("c", c).node("Softmax", {"c"}, {"d"}, {{"axis", std::int64_t{1}}});
  folds(rows, at::softmax(c.flatten(1), 1).reshape(c.sizes()));
  sum.initializer("c", c).initializer("a", ints({2})).node("ReduceLogSumExp", {"c", "a"}, {"d"});
  folds(sum, at::logsumexp(c, Ints{2}, true));
  all.initializer("c", c).node("ReduceLogSumExp", {"c"}, {"d"});
  folds(all, at::logsumexp(c, Ints{0, 1, 2}, true));
  padded.initializer("c", c.slice(2, 1))
      .initializer("p", ints({0, 0, 1, 0, 0, 0}))
      .initializer("v", scalar(0.5))
      .node("Pad", {"c", "p", "v"}, {"d"});
  folds(padded, at::constant_pad_nd(c.slice(2, 1), {1, 0}, 0.5));
}

TEST(Reductions, OverAnyAxesAsAttributeAndAsInput) {
  for (const auto& [type, value] : kReductions) {
    for (const Ints& axes : {Ints{1}, Ints{2}, Ints{3}, Ints{1, 3}, Ints{2, 3}, Ints{1, 2, 3}}) {
      for (const bool keepdims : {true, false}) {
        if (axes.size() == 3 && !keepdims) continue;  // nothing for Flatten to flatten
        SCOPED_TRACE(std::string(type) + c10::str(at::IntArrayRef(axes)) + (keepdims ? "k" : ""));
        OnnxFile attribute(11, kImage), input(18, kImage);
        const Attributes keep{{"keepdims", std::int64_t{keepdims}}};
        attribute.node(type, {"x"}, {"y"}, {{"axes", axes}, keep[0]});
        input.initializer("a", ints(axes)).node(type, {"x", "a"}, {"y"}, keep);
        const auto expected = value(image(), axes, keepdims);
        expect_near(attribute.run(image()), expected);
        expect_near(input.run(image()), expected);
      }
    }
  }
}

TEST(Reductions, WithChannelsLast) {
  for (const auto& [type, value] : kReductions) {
    for (const Ints& axes : {Ints{1}, Ints{3}, Ints{1, 2}, Ints{2, 3}}) {
      for (const bool keepdims : {true, false}) {
        OnnxFile file(11, kImage);
        file.node("Transpose", {"x"}, {"t"}, {{"perm", Ints{0, 2, 3, 1}}})
            .node(type, {"t"}, {"y"}, {{"axes", axes}, {"keepdims", std::int64_t{keepdims}}});
        expect_near(file.run(image()), value(image().permute({0, 2, 3, 1}), axes, keepdims));
      }
    }
  }
}

TEST(Reductions, WithoutAxes) {
  OnnxFile nothing(18, kImage);
  nothing.node("ReduceMean", {"x"}, {"y"}, {{"noop_with_empty_axes", std::int64_t{1}}});
  expect_near(nothing.run(image()), image());
  OnnxFile all(18, kImage);
  all.node("ReduceMean", {"x"}, {"y"});
  EXPECT_NE(refusal(all).find("batch"), std::string::npos);
}

TEST(Reductions, OverHeightAndWidthArePools) {
  OnnxFile mean(11, kImage);
  mean.node("ReduceMean", {"x"}, {"y"}, {{"axes", Ints{-1, -2}}});
  EXPECT_EQ(count<GlobalAvgPool>(mean.import()), 1);
  OnnxFile most(11, kImage);
  most.node("GlobalMaxPool", {"x"}, {"y"});
  expect_near(most.run(image()), image().amax({2, 3}, true));
}

TEST(Reductions, OfShapesAreFolded) {
  OnnxFile file(13, kImage);
  file.initializer("s", ints({1})).initializer("e", ints({4})).initializer("a", ints({0}));
  file.initializer("minus", ints({-1}))
      .node("Shape", {"x"}, {"shape"})
      .node("Slice", {"shape", "s", "e"}, {"chw"})
      .node("ReduceProd", {"chw"}, {"all"})
      .node("Concat", {"minus", "all"}, {"to"}, {{"axis", std::int64_t{0}}})
      .node("Reshape", {"x", "to"}, {"y"});
  expect_near(file.run(image()), image());
  OnnxFile batch(13, kImage);
  batch.node("Shape", {"x"}, {"shape"}).node("ReduceProd", {"shape"}, {"p"});
  batch.node("Reshape", {"x", "p"}, {"y"});
  EXPECT_NE(refusal(batch).find("batch"), std::string::npos);
}

TEST(Softmax, OverEachAxisAndFlattened) {
  for (const std::int64_t axis : {1, 2, 3, -1, -2}) {
    OnnxFile file(13, kImage), log(13, kImage);
    file.node("Softmax", {"x"}, {"s"}, {{"axis", axis}}).node("Neg", {"s"}, {"y"});
    expect_near(file.run(image()), -at::softmax(image(), axis));
    log.node("LogSoftmax", {"x"}, {"s"}, {{"axis", axis}}).node("Neg", {"s"}, {"y"});
    expect_near(log.run(image()), -at::log_softmax(image(), axis));
  }
  for (const std::int64_t axis : {1, 2, 3}) {
    OnnxFile file(11, kImage), log(11, kImage);
    file.node("Softmax", {"x"}, {"s"}, {{"axis", axis}}).node("Neg", {"s"}, {"y"});
    const auto rows = image().flatten(axis);
    expect_near(file.run(image()), -at::softmax(rows, axis).reshape(image().sizes()));
    log.node("LogSoftmax", {"x"}, {"s"}, {{"axis", axis}}).node("Neg", {"s"}, {"y"});
    expect_near(log.run(image()), -at::log_softmax(rows, axis).reshape(image().sizes()));
  }
}

TEST(Normalisations, OfOneImage) {
  const auto g = wave({4}) + 2, b = wave({4}).cos();
  const auto file_of = [&](const char* type, std::int64_t opset, const Attributes& attributes,
                           const at::Tensor& scale, const at::Tensor& bias) {
    OnnxFile file(opset, kImage);
    file.initializer("g", scale).initializer("b", bias);
    file.node(type, {"x", "g", "b"}, {"y"}, attributes);
    return file;
  };
  expect_near(file_of("InstanceNormalization", 13, {{"epsilon", 0.01F}}, g, b).run(image()),
              at::instance_norm(image(), g, b, {}, {}, true, 0, 0.01, false));
  const Attributes groups{{"num_groups", std::int64_t{2}}, {"epsilon", 0.01F}};
  expect_near(file_of("GroupNormalization", 21, groups, g, b).run(image()),
              at::group_norm(image(), 2, g, b, 0.01));
  const auto two = wave({2}) + 2, less = wave({2}).cos();
  expect_near(
      file_of("GroupNormalization", 18, groups, two, less).run(image()),
      at::group_norm(image(), 2, two.repeat_interleave(2), less.repeat_interleave(2), 0.01));
  const auto rows = wave({7}) + 2, shift = wave({7});
  expect_near(file_of("LayerNormalization", 17, {}, rows, shift).run(image()),
              at::layer_norm(image(), {7}, rows, shift));
  const auto whole = wave({4, 9, 7}) + 2, shifts = wave({4, 9, 7});
  const Attributes from_one{{"axis", std::int64_t{1}}};
  expect_near(file_of("LayerNormalization", 17, from_one, whole, shifts).run(image()),
              at::layer_norm(image(), {4, 9, 7}, whole, shifts));
}

TEST(Normalisations, ByRootMeanSquareAndByLength) {
  const auto scale = wave({7}) + 2;
  OnnxFile rms(23, kImage);
  rms.initializer("g", scale).node("RMSNormalization", {"x", "g"}, {"y"}, {{"epsilon", 0.01F}});
  const auto mean = image().square().mean({3}, true);
  expect_near(rms.run(image()), image() / (mean + 0.01).sqrt() * scale);
  OnnxFile two(13, kImage), one(13, kImage);
  two.node("LpNormalization", {"x"}, {"y"}, {{"axis", std::int64_t{1}}});
  expect_near(two.run(image()), image() / image().square().sum({1}, true).sqrt());
  one.node("LpNormalization", {"x"}, {"y"}, {{"axis", std::int64_t{1}}, {"p", std::int64_t{1}}});
  expect_near(one.run(image()), image() / image().abs().sum({1}, true));
  const auto zeros = image() * 0;
  expect_near(two.run(zeros), zeros);
  expect_near(one.run(zeros), zeros);
}

}  // namespace
}  // namespace zsq::models
