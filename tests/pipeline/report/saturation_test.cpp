// SPDX-License-Identifier: Apache-2.0
// What a run says of x86 processors without VNNI.
#include "pipeline/report/saturation.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "pipeline/export.h"
#include "pipeline/quantize.h"
#include "pipeline/session/session.h"
#include "tests/support/network_builder.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_network.h"

namespace zsq::saturation_test {
namespace {

// All weights of one sign: pairs are as large as they can be.
models::Model one_sign() {
  test::NetworkBuilder net({3, 16, 16}, test::varied_parameters(3));
  auto x = net.conv_bn_relu("stem", net.input(), 3, 8);
  x = net.conv_bn_relu("body", x, 8, 8);
  x = net.op("pool", models::GlobalAvgPool{}, {x});
  x = net.op("flatten", models::Flatten{}, {x});
  auto model = net.finish(net.linear("fc", x, 8, test::kShapeClasses), test::kShapeClasses);
  for (const char* weight : {"stem.weight", "body.weight"})
    model.parameters.at(weight) = model.parameters.at(weight).abs();
  return model;
}

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

QuantizeReport run(const std::filesystem::path& folder, const std::string& saturation,
                   const std::string& target) {
  test::save_onnx(one_sign(), folder / "network.onnx");
  QuantizeOptions options;
  options.scheme = Scheme::parse("W8A8");
  options.recipe = load_recipe(
      "instant", {"data.preset=cifar10", "process.threads=1", "process.agreement_images=16",
                  "quantize.target=" + target, "quantize.weights.saturation=" + saturation});
  return quantize(folder / "network.onnx", options, folder / "run");
}

TEST(Saturation, ARunIsTheSameEverywhereAndSaysWhatThatTook) {
  const test::TempFolder folder;
  const auto report = run(folder / "", "avoid", "onnxruntime");
  ASSERT_TRUE(report.saturation);
  EXPECT_EQ(report.saturation->layers, 0);
  EXPECT_EQ(report.saturation->bounded, 8 + 8 + test::kShapeClasses);
  EXPECT_GE(report.saturation->narrowed, 12);
  EXPECT_GT(report.saturation->mean_factor, 1.1);
  EXPECT_LE(report.saturation->mean_factor, 2);
  EXPECT_FALSE(report.saturation->divergence);
  EXPECT_EQ(report.saturation->words.find("yes"), 0u) << report.saturation->words;
  EXPECT_NE(to_json(report).find("\"narrowed\""), std::string::npos);
}

TEST(Saturation, ARunThatMaySaturateSaysWhatItLoses) {
  const test::TempFolder folder;
  const auto report = run(folder / "", "allow", "onnxruntime");
  ASSERT_TRUE(report.saturation && report.saturation->divergence && report.divergence);
  EXPECT_GE(report.saturation->layers, 1);
  EXPECT_GT(*report.saturation->divergence, 2 * *report.divergence);
  EXPECT_EQ(report.saturation->synthetic.size(), 2u);
  EXPECT_EQ(report.saturation->words.find("no"), 0u) << report.saturation->words;
  EXPECT_NE(report.saturation->words.find("quantize.weights.saturation"), std::string::npos);
}

// Runs from before there was a bound: nothing is rounded again.
TEST(Saturation, AnEarlierRunKeepsItsFileAndIsSafeInOthers) {
  const test::TempFolder folder;
  run(folder / "", "allow", "onnxruntime");
  const auto out = folder / "run", recipe = out / "resolved.yaml";
  std::string text = bytes_of(recipe);
  const std::size_t at = text.find("saturation: allow");
  ASSERT_NE(at, std::string::npos);
  std::ofstream(recipe) << text.replace(at, 17, "saturation: avoid");
  ExportRunOptions options;
  options.output = folder / "again.onnx";
  export_run(out, options);
  EXPECT_TRUE(bytes_of(out / "model.onnx") == bytes_of(options.output));

  options.target = Target::openvino;
  options.output = folder / "openvino.onnx";
  export_run(out, options);
  const auto layers = [&](const std::filesystem::path& file) {
    const auto model = pipeline::load_any(file, {}, Device::cpu);
    return pipeline::saturating_network(model, file).layers;
  };
  EXPECT_GE(layers(out / "model.onnx"), 1);
  try {
    EXPECT_EQ(layers(options.output), 0);
  } catch (const Error& error) {  // no layer is left that has int8 weights
    EXPECT_EQ(error.code(), ErrorCode::usage);
  }
}

TEST(Saturation, NothingIsSaidOfRuntimesThatDoNot) {
  const test::TempFolder folder;
  EXPECT_FALSE(run(folder / "", "avoid", "tensorrt").saturation);
}

TEST(Saturation, FloatFilesHaveNoIntegers) {
  const test::TempFolder folder;
  test::save_onnx(one_sign(), folder / "network.onnx");
  const auto model = pipeline::load_any(folder / "network.onnx", {}, Device::cpu);
  try {
    pipeline::saturating_network(model, folder / "network.onnx");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_NE(std::string(error.what()).find("int8"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace zsq::saturation_test
