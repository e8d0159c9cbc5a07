// SPDX-License-Identifier: Apache-2.0
// Small graphs that ask for far more memory than their weights have.
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "tests/models/onnx_file.h"
#include "tests/models/script.h"
#include "tests/support/error_message.h"

namespace zsq::models::limits_test {
namespace {

using test::Ints;
using test::Names;
using test::OnnxFile;

const Ints kImage{1, 2, 2};

std::string refused(const OnnxFile& file) {
  return test::error_message(ErrorCode::bad_input, [&] { file.import(); });
}
constexpr const char* kTooMuch = "uses its weights too often, or makes constants";

void expect_too_much(const OnnxFile& file) {
  EXPECT_NE(refused(file).find(kTooMuch), std::string::npos);
}

at::Tensor shape_of(const Ints& sizes) { return at::tensor(sizes, at::kLong); }

// A row and a column of 2^16 elements, which together make 2^32.
OnnxFile row_and_column() {
  OnnxFile file(17, kImage);
  file.initializer("one", at::zeros({1}));
  file.initializer("row", shape_of({1, 1 << 16})).initializer("column", shape_of({1 << 16, 1}));
  file.node("Expand", {"one", "row"}, {"a"}).node("Expand", {"one", "column"}, {"b"});
  return file;
}

TEST(ConstantLimits, BroadcastsAreJudgedBeforeTheyAreMade) {
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Min", "Max"}) {
    SCOPED_TRACE(op);
    expect_too_much(row_and_column().node(op, {"a", "b"}, {"c"}).node("Add", {"x", "c"}, {"y"}));
  }
  expect_too_much(row_and_column().node("Equal", {"a", "b"}, {"c"}).node("Add", {"x", "c"}, {"y"}));
  expect_too_much(row_and_column().node("Clip", {"a", "b"}, {"c"}).node("Add", {"x", "c"}, {"y"}));
  expect_too_much(
      row_and_column().node("Where", {"one", "a", "b"}, {"c"}).node("Add", {"x", "c"}, {"y"}));
}

TEST(ConstantLimits, JoinedAndGatheredConstants) {
  OnnxFile joined(17, kImage);
  joined.initializer("one", at::zeros({1})).initializer("long", shape_of({1 << 24}));
  joined.node("Expand", {"one", "long"}, {"a"});
  joined.node("Concat", Names(100, "a"), {"c"}, {{"axis", std::int64_t{0}}});
  expect_too_much(joined.node("Add", {"x", "c"}, {"y"}));

  OnnxFile gathered(17, kImage);
  gathered.initializer("one", at::zeros({1})).initializer("zero", at::zeros({1}, at::kLong));
  gathered.initializer("wide", shape_of({1, 1 << 20})).initializer("long", shape_of({1 << 12}));
  gathered.node("Expand", {"one", "wide"}, {"a"}).node("Expand", {"zero", "long"}, {"i"});
  gathered.node("Gather", {"a", "i"}, {"c"});
  expect_too_much(gathered.node("Add", {"x", "c"}, {"y"}));
}

// Rows without columns take no bytes, in whatever number.
TEST(StateLimits, ClassesThatTheFileDoesNotHold) {
  const auto refused = [](std::int64_t rows) {
    const formats::NamedArrays state{{"fc.weight", {formats::DType::f32, {rows, 0}, {}}}};
    return test::error_message(ErrorCode::bad_input, [&] { build("resnet18", state); });
  };
  EXPECT_NE(refused(1 << 24).find("fc.weight [16777216, 0] instead of [16777216, 512]"),
            std::string::npos);
  EXPECT_NE(refused(std::int64_t{1} << 62).find("4611686018427387904 rows"), std::string::npos);
}

// A node splits a map into one part per channel.
TEST(GraphLimits, PartsWithoutEnd) {
  OnnxFile file(17, {6'000, 1, 1});
  file.initializer("size", at::scalar_tensor(1, at::kLong))
      .initializer("first", at::scalar_tensor(0, at::kLong));
  for (int i = 0; i < 4; ++i) {
    const auto parts = "s" + std::to_string(i), sum = "a" + std::to_string(i);
    file.node("SplitToSequence", {"x", "size"}, {parts}, {{"axis", std::int64_t{1}}});
    file.node("SequenceAt", {parts, "first"}, {sum});
  }
  file.node("Concat", {"a0", "a1", "a2", "a3"}, {"y"}, {{"axis", std::int64_t{1}}});
  EXPECT_NE(test::refusal(file).find("too many nodes"), std::string::npos);
}

TEST(ScriptLimits, CopiesCountAsSteps) {
  const auto refused = [](const std::string& body, formats::TorchScript::Value held) {
    auto file = test::script(body);
    file.traced_shape = {1, 1, 2, 2};
    file.objects[0].attributes["held"] = std::move(held);
    return test::error_message(ErrorCode::unsupported_model, [&] { import_torchscript(file); });
  };
  using Value = formats::TorchScript::Value;
  Value list{.kind = Value::Kind::list};
  list.items.resize(100'000);
  const Value text{.kind = Value::Kind::text, .text = std::string(1 << 20, 'x')};
  const std::string loop = "kept = []\nfor i in range(100000):\n  ";
  const char* too_long = "runs longer than that of any network";
  EXPECT_NE(refused(loop + "kept = torch.append(kept, self.held)\ny = x", list).find(too_long),
            std::string::npos);
  EXPECT_NE(refused(loop + "kept = torch.append(kept, self.held)\ny = x", text).find(too_long),
            std::string::npos);
  EXPECT_NE(refused("t = self.held\n" + loop + "kept = torch.append(kept, t)\ny = x", text)
                .find(too_long),
            std::string::npos);
  EXPECT_NE(
      refused("t = self.held\n" + loop + "kept = torch.append(kept, torch.add(t, []))\ny = x", list)
          .find("makes lists without end"),
      std::string::npos);
}

// Each use of a weight is a copy that is trained apart.
TEST(ConstantLimits, OneWeightInManyNodes) {
  const auto chain = [](int nodes) {
    OnnxFile file(17, kImage);
    file.initializer("w", at::zeros({1, 1 << 20, 1, 1}));
    std::string before = "x";
    for (int i = 0; i < nodes; ++i) {
      const auto name = i + 1 < nodes ? "v" + std::to_string(i) : "y";
      file.node("Add", {before, "w"}, {name});
      before = name;
    }
    return file;
  };
  EXPECT_NO_THROW(chain(10).import());
  expect_too_much(chain(200));
}

// Older exporters hold the weights in nodes: these count as what the file holds.
TEST(ConstantLimits, WeightsInNodesAreWeights) {
  OnnxFile file(17, kImage);
  const auto weight = to_array(at::zeros({1, 80 << 20, 1, 1}, at::kFloat));
  file.node("Constant", {}, {"w"}, {{"value", weight}}).node("Add", {"x", "w"}, {"y"});
  EXPECT_NO_THROW(file.import());
}

}  // namespace
}  // namespace zsq::models::limits_test
