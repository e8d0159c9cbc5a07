// SPDX-License-Identifier: Apache-2.0
#include "models/operators.h"

#include <algorithm>

#include "tests/models/operators.h"

namespace zsq::models {
namespace {

bool holds(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

// What the lists name is read, and what they do not name is refused.
TEST(Operators, AreThoseThatTheImportersKnow) {
  const auto lists = operator_lists();
  EXPECT_TRUE(holds(lists.onnx, "Relu"));
  EXPECT_TRUE(holds(lists.onnx_constants, "Range"));
  EXPECT_TRUE(holds(lists.aten, "conv2d"));
  EXPECT_FALSE(holds(lists.onnx, "Attention"));
  OnnxFile known(17, kImage), unknown(23, kImage);
  known.node("Relu", {"x"}, {"y"});
  expect_near(known.run(image()), image().clamp_min(0));
  unknown.node("Attention", {"x", "x", "x"}, {"y"});
  EXPECT_NE(refusal(unknown).find("Attention"), std::string::npos);
  for (const auto& name : lists.onnx_constants) EXPECT_FALSE(holds(lists.onnx, name)) << name;
}

TEST(Operators, OpsetsAreReadFromTheFirstToTheLast) {
  const auto lists = operator_lists();
  for (const auto opset : {lists.first_opset, lists.last_opset}) {
    OnnxFile file(opset, kImage);
    file.node("Relu", {"x"}, {"y"});
    expect_near(file.run(image()), image().clamp_min(0));
  }
  for (const auto opset : {lists.first_opset - 1, lists.last_opset + 1}) {
    OnnxFile file(opset, kImage);
    file.node("Relu", {"x"}, {"y"});
    EXPECT_NE(refusal(file).find("opset " + std::to_string(opset)), std::string::npos);
  }
}

}  // namespace
}  // namespace zsq::models
