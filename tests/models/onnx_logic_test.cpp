// SPDX-License-Identifier: Apache-2.0
// Against plain ATen.
#include <ATen/ops/einsum.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include "tests/models/operators.h"

namespace zsq::models::onnx_logic_test {
namespace {

using at::Tensor;

TEST(Logic, ChoosesByEachComparison) {
  const auto x = at::where(image().gt(2), Tensor(scalar(0.5)), image());  // equal ones among them
  ASSERT_TRUE(x.eq(0.5).any().item<bool>());
  for (const auto& [type, condition] : std::map<std::string, Tensor>{{"Greater", x.gt(0.5)},
                                                                     {"GreaterOrEqual", x.ge(0.5)},
                                                                     {"Less", x.lt(0.5)},
                                                                     {"LessOrEqual", x.le(0.5)}}) {
    const auto y = OnnxFile(17, kImage)
                       .initializer("half", scalar(0.5))
                       .initializer("other", wave({4, 1, 1}))
                       .node(type, {"x", "half"}, {"condition"})
                       .node("Where", {"condition", "x", "other"}, {"y"})
                       .run(x);
    EXPECT_TRUE(y.equal(at::where(condition, x, wave({4, 1, 1})).flatten(1))) << type;
  }
}

TEST(Logic, ComparesTwoActivationsAndCombinesConditions) {
  OnnxFile file(17, kImage);
  file.initializer("low", scalar(-1))
      .initializer("zero", scalar(0))
      .node("Sin", {"x"}, {"wave"})
      .node("Greater", {"x", "wave"}, {"above"})
      .node("Less", {"x", "low"}, {"below"});
  const auto above = image().gt(image().sin()), below = image().lt(-1);
  file.node("Or", {"above", "below"}, {"either"})
      .node("Not", {"below"}, {"not_below"})
      .node("And", {"either", "not_below"}, {"both"})
      .node("Cast", {"both"}, {"cast"}, {{"to", std::int64_t{9}}})
      .node("Where", {"cast", "zero", "x"}, {"y"});
  const auto expected = above.logical_or(below).logical_and(below.logical_not());
  EXPECT_TRUE(file.run(image()).equal(at::where(expected, Tensor(scalar(0)), image()).flatten(1)));
}

TEST(Logic, TakesAConditionThatIsKnown) {
  OnnxFile whole(17, kImage);
  whole.initializer("yes", ints({1}).to(at::kBool))
      .node("Sin", {"x"}, {"other"})
      .node("Where", {"yes", "other", "x"}, {"y"});
  EXPECT_EQ(count<Mul>(whole.import()), 0);
  EXPECT_TRUE(whole.run(image()).equal(image().sin().flatten(1)));
  const auto mask = ints({1, 0, 0, 1}).to(at::kBool).reshape({4, 1, 1});
  OnnxFile parts(17, kImage);
  parts.initializer("mask", mask)
      .node("Sin", {"x"}, {"other"})
      .node("Where", {"mask", "other", "x"}, {"y"});
  EXPECT_TRUE(parts.run(image()).equal(at::where(mask, image().sin(), image()).flatten(1)));
}

TEST(Logic, AConstantBranchMayBeLargerThanTheCondition) {
  OnnxFile file(17, kImage);
  file.initializer("zero", at::zeros({4, 9, 7}))
      .initializer("bound", scalar(0))
      .initializer("axes", ints({1}))
      .node("ReduceSum", {"x", "axes"}, {"sum"})
      .node("Greater", {"sum", "bound"}, {"condition"})
      .node("Where", {"condition", "zero", "sum"}, {"y"});
  const auto sum = image().sum(1, true);
  EXPECT_TRUE(at::allclose(file.run(image()),
                           at::where(sum.gt(0), at::zeros({4, 9, 7}), sum).flatten(1), 1e-5, 1e-5));
}

// As PyTorch's exporter by torch.export writes softplus: one function here, not four.
TEST(Logic, SoftplusInPartsIsOneFunction) {
  OnnxFile file(18, kImage);
  file.initializer("beta", scalar(2))
      .initializer("threshold", scalar(20))
      .node("Mul", {"x", "beta"}, {"scaled"})
      .node("Softplus", {"scaled"}, {"soft"})
      .node("Div", {"soft", "beta"}, {"small"})
      .node("Greater", {"scaled", "threshold"}, {"above"})
      .node("Where", {"above", "x", "small"}, {"y"});
  const auto x = image() * 6;
  expect_near(file.run(x), at::softplus(x, 2));
  const auto model = file.import();
  for (const auto& node : model.graph.nodes) EXPECT_FALSE(is<Add>(node)) << node.name;
}

// Like ReLU but for a few values: no function that is recognized by points of its curve.
TEST(Logic, AJumpBesideZeroIsNoRelu) {
  OnnxFile file(17, kImage);
  file.initializer("bound", scalar(-0.05))
      .node("Greater", {"x", "bound"}, {"condition"})
      .node("Cast", {"condition"}, {"mask"}, {{"to", std::int64_t{1}}})
      .node("Mul", {"x", "mask"}, {"y"});
  const auto x = image() * 0.02;
  EXPECT_TRUE(file.run(x).equal((x * x.gt(-0.05)).flatten(1)));
}

TEST(Logic, RefusesABranchThatMayBeInfinite) {
  OnnxFile file(17, kImage);
  file.initializer("zero", scalar(0))
      .node("Greater", {"x", "zero"}, {"condition"})
      .node("Log", {"x"}, {"log"})
      .node("Where", {"condition", "log", "x"}, {"y"});
  EXPECT_NE(refusal(file).find("Where 'node_y': chooses between values of which one may be "
                               "infinite ('node_log')"),
            std::string::npos)
      << refusal(file);
}

Tensor einsum(const std::string& equation, const Tensor& constant = {}) {
  OnnxFile file(17, kImage);
  file.node("Sin", {"x"}, {"other"});
  if (constant.defined()) file.initializer("constant", constant);
  const bool one = equation.find(',') == std::string::npos;
  Names inputs{"x"};
  if (!one) inputs.push_back(constant.defined() ? "constant" : "other");
  return file.node("Einsum", inputs, {"y"}, {{"equation", equation}}).run(image());
}

TEST(Einsum, OfTwoActivations) {
  const auto x = image(), other = image().sin();
  for (const std::string equation : {"nchw,nchw->nc", "nchw,nchw->nhwc", "nchw,ndhw->ncd",
                                     "nchw,nchv->nvwh", "bihw,bjhw->bji", "nchw, nchv -> nhc"})
    expect_near(einsum(equation), at::einsum(equation, {x, other}));
}

TEST(Einsum, OfOneTensorAndOfAConstant) {
  expect_near(einsum("nchw->nwc"), at::einsum("nchw->nwc", {image()}));
  const auto matrix = wave({5, 4}), gate = wave({4, 7});
  expect_near(einsum("nchw,dc->ndhw", matrix), at::einsum("nchw,dc->ndhw", {image(), matrix}));
  expect_near(einsum("nchw,cw->nch", gate), at::einsum("nchw,cw->nch", {image(), gate}));
}

TEST(Einsum, RefusesWhatItDoesNotKnowByName) {
  const auto said = [](const std::string& equation, const Names& inputs) {
    return refusal(OnnxFile(17, kImage)
                       .node("Sin", {"x"}, {"other"})
                       .node("Einsum", inputs, {"y"}, {{"equation", equation}}));
  };
  EXPECT_NE(said("...hw->...wh", {"x"}).find("Einsum 'node_y': an ellipsis"), std::string::npos);
  EXPECT_NE(said("nchw->chw", {"x"}).find("the batch"), std::string::npos);
  EXPECT_NE(said("nchw,mchw->nm", {"x", "other"}).find("the batch"), std::string::npos);
  EXPECT_NE(said("nchw,nchw,nchw->nc", {"x", "x", "x"}).find("one or two"), std::string::npos);
  EXPECT_NE(said("nchc->nh", {"x"}).find("a diagonal"), std::string::npos);
  EXPECT_NE(said("nchw->nz", {"x"}).find("does not follow"), std::string::npos);
}

}  // namespace
}  // namespace zsq::models::onnx_logic_test
