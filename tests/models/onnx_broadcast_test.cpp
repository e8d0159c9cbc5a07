// SPDX-License-Identifier: Apache-2.0
// Operators of several tensors and constants, whose shapes align at the right, against plain ATen.
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/zeros.h>

#include "tests/models/operators.h"

namespace zsq::models::onnx_broadcast_test {
namespace {

const Attributes kChannelsLast{{"perm", Ints{0, 2, 3, 1}}},
    kChannelsFirst{{"perm", Ints{0, 3, 1, 2}}};

using Binaries = at::Tensor (*)(const at::Tensor&, const at::Tensor&);
struct Operator {
  const char* type;
  Binaries value;
};
const Operator kOperators[]{
    {"Add", [](const at::Tensor& a, const at::Tensor& b) { return a + b; }},
    {"Sub", [](const at::Tensor& a, const at::Tensor& b) { return a - b; }},
    {"Mul", [](const at::Tensor& a, const at::Tensor& b) { return a * b; }},
    {"Div", [](const at::Tensor& a, const at::Tensor& b) { return a / b; }},
    {"Pow", [](const at::Tensor& a, const at::Tensor& b) { return at::pow(a, b); }},
    {"Max", [](const at::Tensor& a, const at::Tensor& b) { return at::maximum(a, b); }},
    {"Min", [](const at::Tensor& a, const at::Tensor& b) { return at::minimum(a, b); }},
};

// Away from 0, so that every operator is well behaved.
at::Tensor positive(const Ints& shape) { return wave(shape).abs() + 0.5; }

TEST(Broadcasting, OfAConstantOnEitherSideInEveryShape) {
  const auto x = positive({2, 4, 9, 7});
  for (const auto& op : kOperators) {
    for (const Ints& shape : {Ints{}, Ints{1}, Ints{7}, Ints{9, 1}, Ints{4, 1, 1}, Ints{1, 4, 1, 1},
                              Ints{4, 9, 7}, Ints{1, 1, 9, 7}, Ints{1, 1, 1, 1}}) {
      const auto c = positive(shape);
      OnnxFile right(13, kImage), left(13, kImage);
      right.initializer("c", c).node(op.type, {"x", "c"}, {"y"});
      left.initializer("c", c).node(op.type, {"c", "x"}, {"y"});
      SCOPED_TRACE(std::string(op.type) + " " + c10::str(at::IntArrayRef(shape)));
      expect_near(right.run(x), op.value(x, c));
      expect_near(left.run(x), op.value(c, x));
    }
  }
}

// The constants of a file with channels last mean its dimensions, whatever the map's are.
TEST(Broadcasting, OnMapsWithChannelsLast) {
  const auto x = positive({2, 4, 4, 4}), last = x.permute({0, 2, 3, 1});
  for (const auto& op : kOperators) {
    for (const Ints& shape : {Ints{4}, Ints{4, 1}, Ints{4, 1, 1}, Ints{1, 4, 4, 4}, Ints{}}) {
      const auto c = positive(shape);
      OnnxFile file(13, {4, 4, 4});
      file.initializer("c", c)
          .node("Transpose", {"x"}, {"t"}, kChannelsLast)
          .node(op.type, {"t", "c"}, {"u"})
          .node(op.type, {"u", "t"}, {"v"})
          .node("Transpose", {"v"}, {"y"}, kChannelsFirst);
      const auto model = file.import();
      EXPECT_EQ(count<Transpose>(model), 0) << "of maps alone";
      expect_near(file.run(x), op.value(op.value(last, c), last).permute({0, 3, 1, 2}));
    }
  }
}

TEST(Broadcasting, OfTensorsOfTheImage) {
  const auto x = positive({2, 4, 9, 7});
  const auto row = x.mean({2, 3}, true);
  for (const auto& op : kOperators) {
    OnnxFile file(13, kImage);
    file.node("GlobalAveragePool", {"x"}, {"p"}).node(op.type, {"p", "x"}, {"y"});
    expect_near(file.run(x), op.value(row, x));
  }
}

TEST(Broadcasting, ManyInputs) {
  const auto c = wave({4, 1, 1}), d = wave({7});
  const auto pooled = image().mean({2, 3}, true);
  const auto file_of = [&](const char* type) {
    OnnxFile file(13, kImage);
    file.initializer("c", c).initializer("d", d).initializer("one", scalar(0.3));
    file.node("GlobalAveragePool", {"x"}, {"p"}).node(type, {"c", "x", "one", "p", "d"}, {"y"});
    return file;
  };
  const auto sum = image() + c + pooled + d + 0.3;
  expect_near(file_of("Sum").run(image()), sum);
  expect_near(file_of("Mean").run(image()), sum / 5);
  const auto c4 = c.unsqueeze(0), d4 = d.reshape({1, 1, 1, 7});
  const auto most = at::maximum(at::maximum(at::maximum(image(), pooled), c4), d4);
  expect_near(file_of("Max").run(image()), most.clamp_min(0.3));
  const auto least = at::minimum(at::minimum(at::minimum(image(), pooled), c4), d4);
  expect_near(file_of("Min").run(image()), least.clamp_max(0.3));
  OnnxFile alone(13, kImage);
  alone.node("Sum", {"x"}, {"y"});
  expect_near(alone.run(image()), image());
}

TEST(Broadcasting, NumbersBoundFromEitherSide) {
  OnnxFile file(13, kImage);
  file.initializer("low", scalar(-1)).initializer("high", scalar(1));
  file.node("Max", {"low", "x"}, {"m"}).node("Min", {"high", "m"}, {"y"});
  EXPECT_EQ(count<Binary>(file.import()), 0) << "bounds are Clip";
  expect_near(file.run(image()), image().clamp(-1, 1));
}

TEST(Broadcasting, NeverAlongTheBatch) {
  for (const Ints& shape : {Ints{2, 1, 1, 1}, Ints{1, 1, 1, 1, 1}, Ints{2, 4, 9, 7}}) {
    OnnxFile file(13, kImage);
    file.initializer("c", wave(shape)).node("Add", {"x", "c"}, {"y"});
    EXPECT_NE(refusal(file).find("batch"), std::string::npos) << shape.size();
  }
  OnnxFile ranks(13, kImage);
  ranks.node("ReduceMean", {"x"}, {"m"}, {{"axes", Ints{2, 3}}, {"keepdims", std::int64_t{0}}})
      .node("Add", {"x", "m"}, {"y"});
  EXPECT_NE(refusal(ranks).find("dimensions"), std::string::npos);
}

TEST(Broadcasting, AFixedBatchOfEqualRowsIsOneRow) {
  const auto row = wave({1, 4, 1, 1});
  OnnxFile equal(13, kImage), other(13, kImage);
  for (auto* file : {&equal, &other}) {
    file->file.graph.inputs[0].shape[0].value = 2;
    file->node("Mul", {"x", "c"}, {"y"});
  }
  equal.initializer("c", row.expand({2, 4, 1, 1}).contiguous());
  expect_near(equal.run(image()), image() * row);
  other.initializer("c", wave({2, 4, 1, 1}));
  EXPECT_NE(refusal(other).find("each image of the batch"), std::string::npos);
}

// With a batch of one [1, C] meets the last dimension of a map.
TEST(Broadcasting, AFixedBatchOfOneAlignsAtTheRight) {
  OnnxFile file(13, {7, 9, 7});
  file.file.graph.inputs[0].shape[0].value = 1;
  file.node("ReduceMean", {"x"}, {"m"}, {{"axes", Ints{2, 3}}, {"keepdims", std::int64_t{0}}})
      .node("Add", {"m", "x"}, {"y"});
  const auto x = wave({1, 7, 9, 7});
  expect_near(file.run(x), x + x.mean({2, 3}));
}

TEST(PRelu, SlopesOfEveryShape) {
  const auto value = [](const at::Tensor& slope) {
    return image().clamp_min(0) + slope * image().clamp_max(0);
  };
  for (const Ints& shape : {Ints{1}, Ints{4, 1, 1}, Ints{1, 4, 1, 1}, Ints{7}, Ints{4, 9, 7}}) {
    OnnxFile file(13, kImage);
    file.initializer("s", wave(shape)).node("PRelu", {"x", "s"}, {"y"});
    expect_near(file.run(image()), value(wave(shape)));
  }
  OnnxFile one(13, kImage);
  one.initializer("s", scalar(0.2).reshape({1})).node("PRelu", {"x", "s"}, {"y"});
  EXPECT_EQ(count<LeakyRelu>(one.import()), 1);
  OnnxFile alike(13, kImage);
  alike.initializer("s", scalar(0.2).expand({4, 1, 1}).contiguous())
      .node("PRelu", {"x", "s"}, {"y"});
  EXPECT_EQ(count<LeakyRelu>(alike.import()), 1);
  expect_near(alike.run(image()), value(scalar(0.2)));
  OnnxFile last(13, kImage);
  last.initializer("s", wave({4}))
      .node("Transpose", {"x"}, {"t"}, kChannelsLast)
      .node("PRelu", {"t", "s"}, {"u"})
      .node("Transpose", {"u"}, {"y"}, kChannelsFirst);
  expect_near(last.run(image()), value(wave({4, 1, 1})));
}

TEST(Squares, AProductWithItselfIsAPower) {
  OnnxFile file(13, kImage);
  file.node("Mul", {"x", "x"}, {"y"});
  const auto model = file.import();
  EXPECT_EQ(count<Mul>(model), 0);
  expect_near(file.run(image()), image() * image());
}

}  // namespace
}  // namespace zsq::models::onnx_broadcast_test
