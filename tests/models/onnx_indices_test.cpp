// SPDX-License-Identifier: Apache-2.0
// Covers also models/onnx/convert_repeats, models/onnx/fold_logic.
// Places picked by index, repeats, and logic on constants, against plain ATen.
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
  for (const auto& list : {ints({2, 1, 0}), ints({1, 2, 3}), ints({0, 0, -1, 1})})
    expect_near(of(list, 1).run(image()), image().index_select(1, list.remainder(4)));
  const auto table = ints({0, 2, 1, 3}).reshape({2, 2});
  expect_near(of(table, 3).run(image()),
              image().index_select(3, table.flatten()).reshape({2, 4, 9, 2, 2}));
  EXPECT_NE(refusal(of(ints({0}), 0)).find("batch"), std::string::npos);
  EXPECT_NE(refusal(of(ints({4}), 1)).find("out of range"), std::string::npos);
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
