// SPDX-License-Identifier: Apache-2.0
// Every function of one tensor, on activations and on constants, against formulas of ONNX's
// specification in plain ATen.
#include <ATen/ops/erf.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/where.h>

#include <functional>

#include "tests/models/operators.h"

namespace zsq::models {
namespace {

struct Case {
  const char* type;
  Attributes attributes;
  std::function<at::Tensor(const at::Tensor&)> value;
};

at::Tensor elu(const at::Tensor& x, double alpha, double inner, double gamma) {
  return gamma * at::where(x.gt(0), x, alpha * ((x / inner).exp() - 1));
}

const Case kCases[]{
    {"Elu", {{"alpha", 0.7F}}, [](const at::Tensor& x) { return elu(x, 0.7, 1, 1); }},
    {"Elu", {}, [](const at::Tensor& x) { return elu(x, 1, 1, 1); }},
    {"Celu", {{"alpha", 2.0F}}, [](const at::Tensor& x) { return elu(x, 2, 2, 1); }},
    {"Selu", {}, [](const at::Tensor& x) { return elu(x, 1.6732632, 1, 1.0507010); }},
    {"Selu",
     {{"alpha", 2.0F}, {"gamma", 0.5F}},
     [](const at::Tensor& x) { return elu(x, 2, 1, 0.5); }},
    {"Tanh", {}, [](const at::Tensor& x) { return x.tanh(); }},
    {"Softplus", {}, [](const at::Tensor& x) { return (1 + x.exp()).log(); }},
    {"Softsign", {}, [](const at::Tensor& x) { return x / (1 + x.abs()); }},
    {"Mish", {}, [](const at::Tensor& x) { return x * (1 + x.exp()).log().tanh(); }},
    {"ThresholdedRelu",
     {{"alpha", 0.5F}},
     [](const at::Tensor& x) { return x * x.gt(0.5).to(at::kFloat); }},
    {"Erf", {}, [](const at::Tensor& x) { return at::erf(x); }},
    {"Exp", {}, [](const at::Tensor& x) { return x.exp(); }},
    {"Abs", {}, [](const at::Tensor& x) { return x.abs(); }},
    {"Neg", {}, [](const at::Tensor& x) { return -x; }},
    {"Sin", {}, [](const at::Tensor& x) { return x.sin(); }},
    {"Cos", {}, [](const at::Tensor& x) { return x.cos(); }},
    {"Floor", {}, [](const at::Tensor& x) { return x.floor(); }},
    {"Ceil", {}, [](const at::Tensor& x) { return x.ceil(); }},
    {"Round", {}, [](const at::Tensor& x) { return x.round(); }},
    {"Sign", {}, [](const at::Tensor& x) { return x.sign(); }},
    {"Reciprocal", {}, [](const at::Tensor& x) { return 1 / x; }},
    {"Relu", {}, [](const at::Tensor& x) { return x.clamp_min(0); }},
    {"HardSigmoid", {}, [](const at::Tensor& x) { return (0.2 * x + 0.5).clamp(0, 1); }},
    {"HardSwish", {}, [](const at::Tensor& x) { return x * (x / 6 + 0.5).clamp(0, 1); }},
    {"LeakyRelu", {}, [](const at::Tensor& x) { return at::where(x.gt(0), x, 0.01 * x); }},
    {"Gelu", {}, [](const at::Tensor& x) { return 0.5 * x * (1 + at::erf(x / 1.41421356)); }},
    {"Gelu",
     {{"approximate", std::string("tanh")}},
     [](const at::Tensor& x) {
       return 0.5 * x * (1 + (0.79788456 * (x + 0.044715 * x.pow(3))).tanh());
     }},
    {"Swish", {{"alpha", 1.7F}}, [](const at::Tensor& x) { return x / (1 + (-1.7 * x).exp()); }},
    {"Swish", {}, [](const at::Tensor& x) { return x / (1 + (-x).exp()); }},
    {"Sqrt", {}, [](const at::Tensor& x) { return x.sqrt(); }},
    {"Log", {}, [](const at::Tensor& x) { return x.log(); }},
};

at::Tensor domain_of(const Case& test) {
  const bool positive = std::string(test.type) == "Sqrt" || std::string(test.type) == "Log" ||
                        std::string(test.type) == "Reciprocal";
  return positive ? image().abs() + 0.1 : image();
}

TEST(Functions, OfAnActivation) {
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.type);
    OnnxFile file(20, kImage);
    file.node(test.type, {"x"}, {"y"}, test.attributes);
    const auto x = domain_of(test);
    expect_near(file.run(x), test.value(x));
  }
}

TEST(Functions, OnChannelsLastRunOnTheMap) {
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.type);
    OnnxFile file(20, kImage);
    file.node("Transpose", {"x"}, {"t"}, {{"perm", Ints{0, 2, 3, 1}}})
        .node(test.type, {"t"}, {"u"}, test.attributes)
        .node("Transpose", {"u"}, {"y"}, {{"perm", Ints{0, 3, 1, 2}}});
    EXPECT_EQ(count<Transpose>(file.import()), 0);
    const auto x = domain_of(test);
    expect_near(file.run(x), test.value(x));
  }
}

TEST(Functions, OfAConstantAreFolded) {
  for (const auto& test : kCases) {
    if (std::string(test.type) == "Swish") continue;
    SCOPED_TRACE(test.type);
    const auto c = domain_of(test).flatten().slice(0, 0, 4).reshape({4, 1, 1});
    OnnxFile file(20, kImage);
    file.initializer("c", c)
        .node(test.type, {"c"}, {"d"}, test.attributes)
        .node("Add", {"x", "d"}, {"y"});
    EXPECT_EQ(file.import().graph.nodes.size(), 4U) << "input, constant, sum and its row";
    expect_near(file.run(image()), image() + test.value(c));
  }
}

TEST(Functions, ThatNobodyDefinedAreRefused) {
  OnnxFile file(20, kImage);
  file.node("Gelu", {"x"}, {"y"}, {{"approximate", std::string("quick")}});
  EXPECT_NE(refusal(file).find("quick"), std::string::npos);
}

TEST(Functions, PowersWithANumberAreOneNode) {
  const auto x = image().abs() + 0.1;
  for (const double exponent : {3.0, 2.0, 0.5, -1.0, 1.0, 1.0 / 3}) {
    OnnxFile file(13, kImage);
    file.initializer("e", scalar(exponent)).node("Pow", {"x", "e"}, {"y"});
    EXPECT_EQ(count<Binary>(file.import()), 0);
    expect_near(file.run(x), x.pow(exponent));
  }
}

}  // namespace
}  // namespace zsq::models
