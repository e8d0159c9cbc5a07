// SPDX-License-Identifier: Apache-2.0
// Places picked by index, repeats, and logic on constants, against plain ATen.
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include "tests/models/operators.h"

namespace zsq::models {
namespace {

TEST(Gather, PlacesOfAnAxis) {
  const auto of = [](const at::Tensor& indices, std::int64_t axis) {
    OnnxFile file(13, kImage);
    file.initializer("i", indices).node("Gather", {"x", "i"}, {"y"}, {{"axis", axis}});
    return file;
  };
  const auto one = at::scalar_tensor(std::int64_t{-1}, at::kLong);
  expect_near(of(one, 1).run(image()), image().select(1, 3));
  for (const auto& list : {ints({2, 1, 0}), ints({1, 2, 3}), ints({0, 0, -1, 1}),
                           ints({0, 0, 2, 3}), ints({0, 1, 2, 3}), ints({0, 1, 2, 3, 0})})
    expect_near(of(list, 1).run(image()), image().index_select(1, list.remainder(4)));
  const auto table = ints({0, 2, 1, 3}).reshape({2, 2});
  expect_near(of(table, 3).run(image()),
              image().index_select(3, table.flatten()).reshape({2, 4, 9, 2, 2}));
  EXPECT_NE(refusal(of(ints({0}), 0)).find("batch"), std::string::npos);
  EXPECT_NE(refusal(of(ints({4}), 1)).find("out of range"), std::string::npos);
}

TEST(Gather, BackwardsAndWholeRowsBeforeTheBatch) {
  const auto sliced = OnnxFile(17, kImage)
                          .initializer("starts", ints({-1, 6}))
                          .initializer("ends", ints({-100, 1}))
                          .initializer("axes", ints({1, 3}))
                          .initializer("steps", ints({-1, -2}))
                          .node("Slice", {"x", "starts", "ends", "axes", "steps"}, {"y"});
  expect_near(sliced.run(image()), image().flip(1).index_select(3, ints({6, 4, 2})));
  // As PyTorch's exporter by torch.export writes x[:, [3, 1]].
  const auto rows = OnnxFile(17, kImage)
                        .initializer("places", ints({3, 1}).reshape({2, 1}))
                        .node("Transpose", {"x"}, {"first"}, {{"perm", Ints{1, 0, 2, 3}}})
                        .node("GatherND", {"first", "places"}, {"taken"})
                        .node("Transpose", {"taken"}, {"y"}, {{"perm", Ints{1, 0, 2, 3}}});
  expect_near(rows.run(image()), image().index_select(1, ints({3, 1})));
  const auto single = OnnxFile(17, kImage)
                          .initializer("places", ints({0, 1}).reshape({1, 2}))
                          .node("GatherND", {"x", "places"}, {"y"});
  EXPECT_NE(refusal(single).find("GatherND 'node_y': takes single values"), std::string::npos);
}

// Zeros and values of a constant beside, between and before activations, for an open batch too.
TEST(Concat, OfConstants) {
  const auto token = wave({1, 2, 9, 7}), zeros = at::zeros({2, 1, 9, 7});
  OnnxFile file(17, kImage);
  file.initializer("token", token)
      .initializer("rest", ints({1, 9, 7}))
      .initializer("first", ints({0}))
      .initializer("second", ints({1}))
      .node("Sin", {"x"}, {"sine"})
      .node("Shape", {"x"}, {"shape"})
      .node("Slice", {"shape", "first", "second"}, {"batch"})
      .node("Concat", {"batch", "rest"}, {"sizes"}, {{"axis", std::int64_t{0}}})
      .node("ConstantOfShape", {"sizes"}, {"zeros"})
      .node("Concat", {"token", "x", "zeros", "sine", "token"}, {"y"}, {{"axis", std::int64_t{1}}});
  const auto tokens = token.expand({2, 2, 9, 7});
  const auto expected = at::cat({tokens, image(), zeros, image().sin(), tokens}, 1);
  EXPECT_TRUE(file.run(image()).equal(expected.flatten(1)));
  const auto other = refusal(OnnxFile(17, kImage)
                                 .initializer("c", at::zeros({1, 1, 9, 6}))
                                 .node("Concat", {"x", "c"}, {"y"}, {{"axis", std::int64_t{1}}}));
  EXPECT_NE(other.find("Concat 'node_y': the sizes of a constant"), std::string::npos) << other;
}

TEST(Repeats, ExpandAndTile) {
  OnnxFile expand(13, kImage);
  expand.initializer("s", ints({1, 1, 9, 7}))
      .node("GlobalAveragePool", {"x"}, {"p"})
      .node("Expand", {"p", "s"}, {"y"});
  expect_near(expand.run(image()), image().mean({2, 3}, true).expand({2, 4, 9, 7}));
  OnnxFile tile(13, kImage);
  tile.initializer("r", ints({1, 2, 1, 3})).node("Tile", {"x", "r"}, {"y"});
  expect_near(tile.run(image()), image().repeat({1, 2, 1, 3}));
  OnnxFile batch(13, kImage);
  batch.initializer("s", ints({3, 4, 9, 7})).node("Expand", {"x", "s"}, {"y"});
  EXPECT_NE(refusal(batch).find("batch"), std::string::npos);
}

// y = x times what the node makes of two constants.
TEST(Folds, LogicAndArithmetic) {
  const auto a = ints({7, -7, 2, 5}), b = ints({3, 3, 3, 5});
  const auto of = [&](const std::string& type, const Attributes& attributes = {}) {
    OnnxFile file(13, kImage);
    file.initializer("a", a).initializer("b", b).initializer("s", ints({4, 1, 1}));
    file.node(type, {"a", "b"}, {"c"}, attributes)
        .node("Cast", {"c"}, {"d"}, {{"to", std::int64_t{1}}})
        .node("Reshape", {"d", "s"}, {"e"})
        .node("Mul", {"x", "e"}, {"y"});
    return file.run(image());
  };
  const auto times = [](const Ints& values) { return image() * ints(values).reshape({4, 1, 1}); };
  expect_near(of("Mod"), times({1, 2, 2, 0}));
  expect_near(of("Mod", {{"fmod", std::int64_t{1}}}), times({1, -1, 2, 0}));
  expect_near(of("Greater"), times({1, 0, 0, 0}));
  expect_near(of("GreaterOrEqual"), times({1, 0, 0, 1}));
  expect_near(of("Less"), times({0, 1, 1, 0}));
  expect_near(of("LessOrEqual"), times({0, 1, 1, 1}));
  expect_near(of("And"), times({1, 1, 1, 1}));
  expect_near(of("Xor"), times({0, 0, 0, 0}));
  expect_near(of("Pow"), times({343, -343, 8, 3125}));
}

TEST(Folds, CumulativeSums) {
  const auto of = [](const Attributes& attributes) {
    OnnxFile file(13, kImage);
    file.initializer("a", wave({4, 1, 1})).initializer("axis", ints({0}));
    file.node("CumSum", {"a", "axis"}, {"c"}, attributes).node("Mul", {"x", "c"}, {"y"});
    return file.run(image());
  };
  const auto a = wave({4, 1, 1}), sums = a.cumsum(0);
  expect_near(of({}), image() * sums);
  expect_near(of({{"exclusive", std::int64_t{1}}}), image() * (sums - a));
  expect_near(of({{"reverse", std::int64_t{1}}}), image() * a.flip(0).cumsum(0).flip(0));
}

}  // namespace
}  // namespace zsq::models
