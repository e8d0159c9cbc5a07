// SPDX-License-Identifier: Apache-2.0
// Code is followed as Python would: conditions, loops, functions, attributes, lists; all of it
// bounded, and none of it allowed to depend on the image.
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <random>

#include "core/error.h"
#include "tests/models/script.h"

namespace zsq::models {
namespace {

using test::script;

// x is made of ones; the code makes y = x * factor.
void expect_factor(const std::string& code, double factor, const std::string& more = "") {
  const auto x = at::ones({2, 1, 1, 3});
  const auto y = test::run(script(code + "\nreturn torch.flatten(y, 1)", {}, more), x);
  EXPECT_TRUE(at::allclose(y, x.flatten(1).mul(factor))) << code << "\n" << y;
}

std::string refusal(const formats::TorchScript& file, ErrorCode wanted) {
  try {
    test::run(file, at::ones({2, 1, 1, 3}));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), wanted) << error.what();
    return error.what();
  }
  return "accepted";
}

void expect_refused(const std::string& code, const std::string& part, const std::string& more = "",
                    ErrorCode wanted = ErrorCode::unsupported_model) {
  const auto text = refusal(script(code + "\nreturn torch.flatten(y, 1)", {}, more), wanted);
  EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
}

TEST(TorchScript, Conditions) {
  expect_factor("if torch.eq(torch.dim(x), 4):\n  n = 2\nelse:\n  n = 3\ny = torch.mul(x, n)", 2);
  expect_factor("if torch.gt(torch.size(x, 3), 5):\n  n = 2\nelse:\n  n = 3\ny = torch.mul(x, n)",
                3);
  expect_factor("if torch.__is__(None, None):\n  y = torch.mul(x, 4)\nelse:\n  pass", 4);
  expect_refused("if torch.mean(x):\n  y = x\nelse:\n  pass",
                 "mean (code/__torch__/net.py, line 3)");
  expect_refused("if torch.relu(x):\n  y = x\nelse:\n  pass",
                 "condition that depends on the image");
  expect_refused("ops.prim.RaiseException(\"too small\")",
                 "line 3: the network refuses an input "
                 "of this shape: too small");
}

TEST(TorchScript, Loops) {
  expect_factor("y = x\nfor i in range(4):\n  y = torch.mul(y, 2)", 16);
  expect_factor("y = x\nfor i in range(4):\n  y = torch.mul(y, torch.add(i, 1))", 24);
  expect_factor("n = 1\nwhile torch.lt(n, 100):\n  n = torch.mul(n, 3)\ny = torch.mul(x, n)", 243);
  expect_refused("while True:\n  y = 1", "runs longer than that of any network");
  expect_refused("y = x\nwhile True:\n  y = torch.relu(y)", "the program is too long");
}

TEST(TorchScript, Arithmetic) {
  expect_factor("y = torch.mul(x, torch.floordiv(-7, 2))", -4);
  expect_factor("y = torch.mul(x, torch.remainder(-7, 2))", 1);
  expect_factor("y = torch.mul(x, torch.div(7, 2))", 3.5);
  expect_factor("y = torch.mul(x, int(torch.sub(7.75, 2)))", 5);
  expect_factor("n = ops.prim.NumToTensor(torch.size(x, 3))\ny = torch.mul(x, int(n))", 3);
  expect_factor("y = torch.mul(x, torch.neg(torch.len(torch.size(x))))", -4);
  expect_factor("y = torch.mul(x, torch.__and__(True, torch.__not__(False)))", 1);
  expect_refused("y = torch.mul(x, torch.floordiv(1, 0))", "divides by zero");
  expect_refused("y = torch.mul(x, torch.mul(9223372036854775807, 2))", "64 bits");
}

TEST(TorchScript, TheBatchStaysOpen) {
  expect_factor("y = torch.view(x, [torch.mul(torch.size(x, 0), 1), -1])", 1);
  expect_factor("a, b, c, d, = torch.size(x)\ny = torch.view(x, [a, torch.mul(c, d), b])", 1);
  expect_refused("y = torch.view(x, [torch.mul(torch.size(x, 0), 3)])",
                 "batch size, which is open");
  expect_refused("y = torch.view(x, [torch.mul(torch.size(x, 0), 3)])", "keep the two apart");
  expect_refused("if torch.eq(torch.size(x, 0), 1):\n  y = x\nelse:\n  y = x",
                 "depends on the batch size");
}

TEST(TorchScript, Lists) {
  expect_factor("l = [1, 2]\n_0 = torch.append(l, 5)\ny = torch.mul(x, l[2])", 5);
  expect_factor(
      "l = annotate(List[int], [1, 2, 3])\nm = torch.slice(l, 1)\n"
      "y = torch.mul(x, torch.add(torch.len(m), m[-1]))",
      5);
  expect_factor("if torch.__contains__([1, 2], 2):\n  y = torch.mul(x, 6)\nelse:\n  pass", 6);
  expect_factor("t = (1, x)\ny = torch.mul(t[1], 7)", 7);
  expect_refused("y = [x][1]", "index 1 is out of range");
  expect_refused("a, b, = [x]\ny = a", "takes 2 values");
}

const char* const kFunctions =
    "def twice(x: Tensor,\n    times: int=2) -> Tensor:\n  return torch.mul(x, times)\n"
    "def deep(n: int) -> int:\n  if torch.eq(n, 0):\n    return 0\n  else:\n    pass\n"
    "  return __torch__.net.deep(torch.sub(n, 1))\n";

TEST(TorchScript, Functions) {
  expect_factor("y = __torch__.net.twice(x, )", 2, kFunctions);
  expect_factor("f = __torch__.net.twice\ny = f(f(x, ), times=5)", 10, kFunctions);
  expect_factor("n = __torch__.net.deep(20)\ny = torch.mul(x, torch.add(n, 1))", 1, kFunctions);
  expect_refused("n = __torch__.net.deep(100000)\ny = x", "nested too deeply", kFunctions);
  expect_refused("y = __torch__.net.missing(x)", "'__torch__.net.missing' is not in the code");
  expect_refused("y = __torch__.net.twice(x, 1, 2)", "too many arguments", kFunctions);
  expect_refused("y = __torch__.net.twice()", "argument 'x' is missing", kFunctions);
  expect_refused("y = z", "variable 'z' has no value", "", ErrorCode::bad_input);
  expect_refused("y = )", "line 3: a bracket is closed", "", ErrorCode::bad_input);
}

// self.layer has a weight and a setting; the node of the graph is named after the path.
TEST(TorchScript, ModulesAndTheirAttributes) {
  auto file =
      script("layer = self.layer\ny = (layer).forward(x, )\nreturn torch.flatten(y, 1)", {},
             "class Layer(Module):\n  weight : Tensor\n  def forward(self, x: Tensor) -> Tensor:\n"
             "    if self.flag:\n      y = torch.conv2d(x, getattr(self, \"weight\"))\n"
             "    else:\n      y = torch.mul(x, self.factor)\n    return torch.relu(y)\n");
  using Kind = formats::TorchScript::Value::Kind;
  file.tensors.emplace_back("layer.weight", to_array(at::ones({1, 1, 1, 1}).mul(3)));
  file.objects.push_back({"__torch__.net.Layer", "layer", {}});
  file.objects[0].attributes["layer"] = {.kind = Kind::object, .index = 1};
  auto& attributes = file.objects[1].attributes;
  attributes["weight"] = {.kind = Kind::tensor, .index = 0};
  attributes["flag"] = {.kind = Kind::boolean, .integer = 1};
  attributes["factor"] = {.kind = Kind::real, .real = 0.5};
  const auto x = at::ones({2, 1, 1, 3});
  EXPECT_TRUE(at::allclose(test::run(file, x), x.flatten(1).mul(3)));
  const auto model = import_torchscript(file, test::sized(3));
  EXPECT_NO_THROW(model.graph.id_of("layer"));
  EXPECT_NO_THROW(model.graph.id_of("layer.relu"));
  attributes["flag"].integer = 0;
  EXPECT_TRUE(at::allclose(test::run(file, x), x.flatten(1).mul(0.5)));
  attributes.erase("flag");
  EXPECT_NE(refusal(file, ErrorCode::unsupported_model).find("attribute 'flag' is missing"),
            std::string::npos);
}

TEST(TorchScript, ForwardReturnsTensors) {
  const auto outputs = [](const char* code) {
    const auto model = import_torchscript(script(code), test::sized(3));
    std::string names;
    for (const auto& output : model.graph.signature.kind.outputs()) names += output.name + " ";
    return names;
  };
  EXPECT_EQ(outputs("return (x, (torch.relu(x), None))"), "output_0 output_1 ");
  EXPECT_EQ(outputs("return torch.repeat(x, [1, 2, 1, 1])"), "output_0 ");
  EXPECT_EQ(outputs("return torch.flatten(x, 1)"), "");  // logits
  const auto text = refusal(script("return 3"), ErrorCode::unsupported_model);
  EXPECT_NE(text.find("something beside tensors"), std::string::npos) << text;
}

// One weight in a long loop would be copied at every use.
TEST(TorchScript, WeightsAreNotMultipliedWithoutEnd) {
  const auto file = script(
      "y = x\nfor i in range(1000):\n  y = torch.mul(y, CONSTANTS.c0)\n"
      "return torch.flatten(y, 1)",
      {at::ones({1, 1, 1000, 3})});
  EXPECT_NE(refusal(file, ErrorCode::unsupported_model).find("weights too often"),
            std::string::npos);
}

// Random changes of the code are refused with Error, or give some network.
TEST(TorchScript, DamagedCodeIsRefusedOrHarmless) {
  const std::string code =
      "a = torch.conv2d(x, CONSTANTS.c0, None, [1, 1], [1, 1], [1, 1], 2)\n"
      "b = torch.relu_(a)\n_0, n, h, w, = torch.size(b)\n"
      "c = torch.view(b, [_0, 2, torch.floordiv(n, 2), h, w])\n"
      "d = torch.view(torch.transpose(c, 1, 2), [_0, n, h, w])\n"
      "e, f, = torch.chunk(d, 2, 1)\ng = torch.cat([f, e], 1)\n"
      "k = torch.max_pool2d(torch.pad(g, [1, 1, 1, 1], \"constant\", 0.), [3, 3], [2, 2])\n"
      "for i in range(2):\n  k = torch.add(k, torch.slice(k, 1, 0, 4, 1))\n"
      "return torch.linear(torch.mean(k, [2, 3]), CONSTANTS.c1)";
  const std::vector<at::Tensor> constants{at::randn({4, 2, 3, 3}), at::randn({5, 4})};
  const auto x = at::randn({2, 4, 6, 6});
  EXPECT_EQ(test::run(script(code, constants), x).size(1), 5);
  std::mt19937 random(11);
  const std::string letters = "0123456789-,()[]. x_abcdefk\n";
  for (int i = 0; i < 3000; ++i) {
    auto changed = code;
    const auto at = random() % changed.size();
    changed[at] = letters[random() % letters.size()];
    try {
      test::run(script(changed, constants), x);
    } catch (const Error&) {
    }
  }
}

}  // namespace
}  // namespace zsq::models
