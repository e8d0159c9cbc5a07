// SPDX-License-Identifier: Apache-2.0
// Functions that are written operator by operator become one node, whatever the order of their
// factors; what is no known function, or is read elsewhere, stays as it is.
#include "models/recognize_functions.h"

#include <ATen/ops/erf.h>
#include <ATen/ops/maximum.h>

#include <map>

#include "tests/models/operators.h"

namespace zsq::models {
namespace {

// A file of numbers by their own text: "0.5" is an initializer of that value.
class Parts : public OnnxFile {
 public:
  Parts() : OnnxFile(17, kImage) {}
  Parts& add(const std::string& type, const std::string& a, const std::string& b,
             const std::string& y) {
    for (const auto& name : {a, b})
      if (numbers_.count(name) == 0 && is_number(name))
        initializer(name, scalar(numbers_[name] = std::stod(name)));
    node(type, b.empty() ? Names{a} : Names{a, b}, {y});
    return *this;
  }

 private:
  static bool is_number(const std::string& name) {
    return !name.empty() && (std::isdigit(name[0]) != 0 || name[0] == '-');
  }
  std::map<std::string, double> numbers_;
};

template <class Op>
void expect_one(const Parts& file, const at::Tensor& expected) {
  const auto model = file.import();
  EXPECT_EQ(count<Op>(model), 1);
  EXPECT_EQ(model.graph.nodes.size(), 3U) << "input, function and the row of the output";
  EXPECT_TRUE(model.parameters.names().empty());
  expect_near(file.run(image()), expected);
}

at::Tensor gelu() { return image() * 0.5 * (1 + at::erf(image() / std::sqrt(2.0))); }

TEST(Recognize, GeluInEveryOrder) {
  const auto gate = [](Parts file) {
    return file.add("Div", "x", "1.4142135", "d")
        .add("Erf", "d", "", "e")
        .add("Add", "1", "e", "s");
  };
  expect_one<Gelu>(gate({}).add("Mul", "x", "s", "p").add("Mul", "p", "0.5", "y"), gelu());
  expect_one<Gelu>(gate({}).add("Mul", "0.5", "x", "h").add("Mul", "h", "s", "y"), gelu());
  expect_one<Gelu>(gate({}).add("Mul", "s", "0.5", "h").add("Mul", "h", "x", "y"), gelu());
  expect_one<Gelu>(gate({}).add("Div", "s", "2", "h").add("Mul", "x", "h", "y"), gelu());
}

TEST(Recognize, GeluByTanh) {
  Parts file;
  file.add("Pow", "x", "3", "c")
      .add("Mul", "c", "0.044715", "k")
      .add("Add", "x", "k", "s")
      .add("Mul", "s", "0.7978845608", "r")
      .add("Tanh", "r", "", "t")
      .add("Add", "t", "1", "o")
      .add("Mul", "0.5", "x", "h")
      .add("Mul", "h", "o", "y");
  const auto x = image();
  const auto model = file.import();
  ASSERT_EQ(count<Elementwise>(model), 1);
  EXPECT_EQ(get_if<Elementwise>(model.graph.nodes[1])->function, Function::gelu_tanh);
  expect_near(file.run(x), 0.5 * x * (1 + (0.7978845608 * (x + 0.044715 * x.pow(3))).tanh()));
}

TEST(Recognize, HardSwishHardSigmoidAndRelus) {
  const auto x = image();
  const auto relu6 = [](Parts file) {
    return file.add("Add", "x", "3", "a").add("Clip", "a", "0", "c0").add("Min", "c0", "6", "c");
  };
  expect_one<HardSwish>(relu6({}).add("Mul", "x", "c", "m").add("Div", "m", "6", "y"),
                        x * (x + 3).clamp(0, 6) / 6);
  expect_one<HardSwish>(relu6({}).add("Div", "c", "6", "m").add("Mul", "m", "x", "y"),
                        x * (x + 3).clamp(0, 6) / 6);
  expect_one<HardSigmoid>(relu6({}).add("Div", "c", "6", "y"), (x + 3).clamp(0, 6) / 6);
  Parts leaky;
  leaky.add("Mul", "0.125", "x", "l").add("Max", "x", "l", "y");
  expect_one<LeakyRelu>(leaky, at::maximum(x, 0.125 * x));
  Parts relu;
  relu.add("Abs", "x", "", "a").add("Add", "a", "x", "s").add("Mul", "s", "0.5", "y");
  expect_one<Clip>(relu, x.clamp_min(0));
}

TEST(Recognize, SigmoidSoftplusAndMish) {
  const auto x = image();
  Parts sigmoid;
  sigmoid.add("Neg", "x", "", "n")
      .add("Exp", "n", "", "e")
      .add("Add", "e", "1", "s")
      .add("Reciprocal", "s", "", "y");
  const auto model = sigmoid.import();
  EXPECT_EQ(model.graph.signature.function, OutputFunction::sigmoid) << "it ends the network";
  EXPECT_EQ(count<Elementwise>(model), 0);
  expect_near(sigmoid.run(x), x.sigmoid());
  Parts mish;
  mish.add("Exp", "x", "", "e")
      .add("Add", "1", "e", "s")
      .add("Log", "s", "", "l")
      .add("Tanh", "l", "", "t")
      .add("Mul", "t", "x", "y");
  const auto known = mish.import();
  ASSERT_EQ(count<Elementwise>(known), 1);
  EXPECT_EQ(get_if<Elementwise>(known.graph.nodes[1])->function, Function::mish);
  expect_near(mish.run(x), x * (1 + x.exp()).log().tanh());
}

TEST(Recognize, WhatIsCutOffFarOutIsAnotherFunction) {
  Parts file;  // ReLU up to 300
  file.add("Abs", "x", "", "a").add("Add", "a", "x", "s").add("Mul", "s", "0.5", "r");
  file.add("Min", "r", "150", "y");
  const auto model = file.import();
  const auto x = image() * 100;
  expect_near(file.run(x), x.clamp(0, 150));
  EXPECT_GE(count<Clip>(model), 1);
}

TEST(Recognize, NotIfAPartIsReadElsewhere) {
  Parts file;
  file.add("Div", "x", "1.4142135", "d")
      .add("Erf", "d", "", "e")
      .add("Add", "e", "1", "s")
      .add("Mul", "x", "s", "p")
      .add("Mul", "p", "0.5", "g")
      .add("Sub", "g", "e", "y");
  EXPECT_EQ(count<Gelu>(file.import()), 0);
  expect_near(file.run(image()), gelu() - at::erf(image() / std::sqrt(2.0)));
}

TEST(Recognize, SiluStaysAProduct) {
  Parts file;
  file.add("Sigmoid", "x", "", "s").add("Mul", "s", "x", "y");
  const auto model = file.import();
  EXPECT_EQ(count<Mul>(model), 1);
  EXPECT_EQ(count<Sigmoid>(model), 1);
}

}  // namespace
}  // namespace zsq::models
