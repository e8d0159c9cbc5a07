// SPDX-License-Identifier: Apache-2.0
// Graphs that are refused, each with its cause in words.
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/models/onnx_file.h"
#include "tests/support/error_message.h"

namespace zsq::models::onnx_refusals_test {
namespace {

using test::Ints;
using test::OnnxFile;
using test::refusal;

const Ints kImage{4, 9, 7};

TEST(Refusals, NameTheCause) {
  OnnxFile unknown(13, kImage);
  unknown.node("LSTM", {"x"}, {"y"});
  const auto text = refusal(unknown);
  EXPECT_NE(text.find("LSTM"), std::string::npos);
  EXPECT_NE(text.find("node_y"), std::string::npos);
  EXPECT_NE(text.find("BatchNormalization, Cast"), std::string::npos);

  OnnxFile custom(13, kImage);
  custom.node("Relu", {"x"}, {"y"}).file.graph.nodes[0].domain = "com.example";
  EXPECT_NE(refusal(custom).find("com.example.Relu"), std::string::npos);

  EXPECT_NE(refusal(OnnxFile(6, kImage)).find("opset 6"), std::string::npos);
  EXPECT_NE(refusal(OnnxFile(27, kImage)).find("opset 27"), std::string::npos);

  OnnxFile two_inputs(13, kImage);
  two_inputs.node("Add", {"x", "z"}, {"y"}).file.graph.inputs.push_back({"z", 1, {}});
  EXPECT_NE(refusal(two_inputs).find("'x' and 'z'"), std::string::npos);

  OnnxFile data_shape(13, kImage);
  data_shape.node("Gather", {"x", "x"}, {"y"});
  EXPECT_NE(refusal(data_shape).find("must be constants"), std::string::npos);
}

// An input that only dead nodes read, before or after the image.
TEST(Inputs, ThatNoOutputDependsOnAreLeftOut) {
  for (const bool first : {false, true}) {
    OnnxFile file(13, kImage);
    file.node("Relu", {"x"}, {"y"}).node("Relu", {"z"}, {"dead"});
    auto& inputs = file.file.graph.inputs;
    inputs.insert(first ? inputs.begin() : inputs.end(), {"z", 1, {}});
    const auto model = file.import();
    EXPECT_EQ(model.graph.signature.input, "x");
    EXPECT_EQ(model.graph.input_shape[0], kImage[0]);
    ASSERT_EQ(model.warnings.size(), 1U);
    EXPECT_NE(model.warnings[0].find("'z'"), std::string::npos);
  }
}

TEST(ImageSize, IsAskedForWhereTheFileLeavesItOpen) {
  OnnxFile file(13, {4, -1, -1});
  file.node("Relu", {"x"}, {"y"});
  EXPECT_THROW(file.import(), Error);
  LoadOptions options;
  options.image_size = {6, 6};
  const auto model = file.import(options);
  EXPECT_EQ(model.graph.input_shape, (std::array<std::int64_t, 3>{4, 6, 6}));
}

TEST(Channels, AreAskedForWhereTheFileLeavesThemOpen) {
  OnnxFile file(13, {-1, 6, 5});
  file.node("Relu", {"x"}, {"y"});
  const auto message = [&] {
    return test::error_message(ErrorCode::bad_input, [&] { file.import(); });
  };
  EXPECT_NE(message().find("(--channels)"), std::string::npos) << message();
  const auto model = file.import({.channels = 4});
  EXPECT_EQ(model.graph.input_shape, (std::array<std::int64_t, 3>{4, 6, 5}));
  EXPECT_TRUE(model.graph.signature.open_channels);
  EXPECT_FALSE(model.graph.signature.open_height || model.graph.signature.open_width);

  // Those that the file gives count first.
  OnnxFile fixed(13, {3, 6, 5});
  fixed.node("Relu", {"x"}, {"y"});
  EXPECT_EQ(fixed.import({.channels = 4}).graph.input_shape[0], 3);
  EXPECT_FALSE(fixed.import({.channels = 4}).graph.signature.open_channels);

  // What an exported file records.
  file.file.metadata["zsq.channels"] = "2";
  EXPECT_EQ(file.import().graph.input_shape[0], 2);
  EXPECT_EQ(file.import({.channels = 4}).graph.input_shape[0], 4);
  for (const auto* wrong : {"many", "0", "-3", "99999999"}) {
    file.file.metadata["zsq.channels"] = wrong;
    EXPECT_NE(message().find("zsq.channels"), std::string::npos) << wrong;
  }
}

// A batch of fixed size makes other arithmetic possible, but no reshape that joins it to channels.
TEST(Refusals, OfArithmeticOnTheBatchSayWhatHelps) {
  for (const std::string type : {"Mul", "Add"}) {
    SCOPED_TRACE(type);
    OnnxFile file(13, kImage);
    file.initializer("first", at::zeros({1}, at::kLong))
        .initializer("two", at::full({1}, 2, at::kLong))
        .initializer("rest", at::tensor({2, 9, 7}, at::kLong))
        .node("Shape", {"x"}, {"shape"})
        .node("Gather", {"shape", "first"}, {"batch"}, {{"axis", std::int64_t{0}}})
        .node(type, {"batch", "two"}, {"count"})
        .node("Concat", {"count", "rest"}, {"wanted"}, {{"axis", std::int64_t{0}}})
        .node("Reshape", {"x", "wanted"}, {"y"});
    const auto text = refusal(file);
    EXPECT_NE(text.find("batch of fixed size"), std::string::npos) << text;
    EXPECT_EQ(text.find("x.view(n, c // 2, 2, h * w)") != std::string::npos, type == "Mul") << text;
  }
}

}  // namespace
}  // namespace zsq::models::onnx_refusals_test
