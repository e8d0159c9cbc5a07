// SPDX-License-Identifier: Apache-2.0
// A network that loses digits on the way: 3000 is added and taken away again, so that a float keeps
// a step of 2^-12 of values near 1.
#include "models/rounding.h"

#include "tests/models/operators.h"

namespace zsq::models {
namespace {

Model losing() {
  OnnxFile file(13, {2, 1, 3});
  file.initializer("big", scalar(3000))
      .node("Mul", {"x", "x"}, {"square"})
      .node("Add", {"square", "big"}, {"large"})
      .node("Sub", {"large", "big"}, {"y"});
  return file.import();
}

const at::Tensor& values() {
  static const auto x =
      at::tensor({0.3F, 0.71F, 0.123F, 0.9F, 0.577F, 0.01F}).reshape({1, 2, 1, 3});
  return x;
}

TEST(Rounding, ExplainsTheDistanceBetweenTwoWaysToRound) {
  const at::NoGradGuard no_grad;
  const auto model = losing();
  const auto output = execute(model.graph, model.parameters, values());
  const auto otherwise = values().square().flatten(1);  // a program that leaves both out
  EXPECT_GT(relative_distance(output, otherwise), 5e-5);
  const auto rounding = measure_rounding(model, values(), output, otherwise);
  ASSERT_TRUE(rounding.has_value());
  EXPECT_NEAR(rounding->here, relative_distance(output, otherwise), 1e-6);
  EXPECT_LT(rounding->there, 1e-6);
  EXPECT_TRUE(rounding->explains(1e-6));
}

TEST(Rounding, ExplainsNoOtherNetwork) {
  const at::NoGradGuard no_grad;
  const auto model = losing();
  const auto output = execute(model.graph, model.parameters, values());
  const auto other = output * 1.01;
  EXPECT_FALSE(measure_rounding(model, values(), output, other)->explains(1e-4));
}

TEST(Rounding, ProvesNothingWhereNothingElseIsLeft) {
  EXPECT_TRUE((Rounding{0.05, 0.1}.explains(1e-4)));
  EXPECT_FALSE((Rounding{0.2, 0.1}.explains(1e-4)));
}

TEST(Rounding, RelativeDistanceIsOfTheLargestValue) {
  EXPECT_DOUBLE_EQ(relative_distance(at::tensor({1.0, 3.0}), at::tensor({2.0, 4.0})), 0.25);
}

}  // namespace
}  // namespace zsq::models
