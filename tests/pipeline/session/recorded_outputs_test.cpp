// SPDX-License-Identifier: Apache-2.0
// What a run was told of its outputs counts for whoever opens its files.
#include "pipeline/session/recorded_outputs.h"

#include <gtest/gtest.h>

#include "formats/onnx.h"
#include "formats/onnx_metadata.h"
#include "formats/safetensors.h"
#include "pipeline/compare.h"
#include "pipeline/evaluate.h"
#include "pipeline/export.h"
#include "pipeline/quantize.h"
#include "tests/support/error_message.h"
#include "tests/support/network_builder.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_network.h"

namespace zsq::pipeline {
namespace {

namespace fs = std::filesystem;

class RecordedOutputs : public testing::Test {
 protected:
  // A classifier of four classes, and the same with its pooled channels as a second output.
  RecordedOutputs() {
    test::NetworkBuilder net({3, 16, 16});
    auto x = net.conv_bn_relu("a", net.input(), 3, 4);
    x = net.op("flatten", models::Flatten{}, {net.op("pool", models::GlobalAvgPool{}, {x})});
    test::save_onnx(net.finish(net.linear("fc", x, 4, test::kShapeClasses)), folder_ / "one.onnx");
    auto file = formats::onnx::read(folder_ / "one.onnx");
    const auto& gemm = file.graph.nodes.back();
    classes_ = file.graph.outputs.at(0).name;
    channels_ = gemm.inputs.at(0);
    formats::onnx::ValueInfo second;
    second.name = channels_;
    file.graph.outputs.push_back(second);
    formats::onnx::write(folder_ / "two.onnx", file);
  }

  void quantize(const std::string& network, const std::vector<NamedMeaning>& output,
                const std::string& run) {
    QuantizeOptions options;
    options.scheme = Scheme::parse("W8A8");
    options.recipe = load_recipe("instant", {"data.preset=cifar10", "process.threads=1"});
    options.recipe.model.output = output;
    zsq::quantize(folder_ / network, options, folder_ / run);
  }

  std::vector<std::string> kinds(const fs::path& a, const fs::path& b) {
    CompareOptions options;
    options.recipe = load_recipe("auto", {"data.preset=cifar10", "process.threads=1"});
    options.images = 4;
    const auto compared = compare_models(a, b, options);
    std::vector<std::string> kinds{compared.output_kind};
    for (const auto& one : compared.outputs_apart) kinds.push_back(one.name + "=" + one.kind);
    return kinds;
  }

  test::TempFolder folder_;
  std::string classes_, channels_;
};

TEST_F(RecordedOutputs, AreThoseOfTheRunForEveryVerb) {
  quantize("two.onnx", {{channels_, OutputMeaning::scores}, {"", OutputMeaning::values}}, "told");
  const auto metadata = formats::onnx::read_metadata(folder_ / "told" / "model.onnx");
  EXPECT_EQ(metadata.at(kOutputsRecord), "{\"" + channels_ + "\":\"scores\",\"\":\"values\"}");
  const std::vector<std::string> told{"several", classes_ + "=values", channels_ + "=scores"};
  EXPECT_EQ(kinds(folder_ / "two.onnx", folder_ / "told"), told);
  EXPECT_EQ(kinds(folder_ / "told", folder_ / "two.onnx"), told);
  EXPECT_EQ(kinds(folder_ / "two.onnx", folder_ / "told" / "model.onnx"), told);
  export_run(folder_ / "told", {Target::openvino, folder_ / "openvino.onnx", {}});
  EXPECT_EQ(kinds(folder_ / "openvino.onnx", folder_ / "two.onnx"), told);
}

TEST_F(RecordedOutputs, AreNotWrittenWhereNothingWasSaid) {
  quantize("one.onnx", {}, "untold");
  EXPECT_FALSE(
      formats::onnx::read_metadata(folder_ / "untold" / "model.onnx").contains(kOutputsRecord));
  EXPECT_FALSE(formats::read_safetensors(folder_ / "untold" / "model.safetensors")
                   .metadata.contains(kOutputsRecord));
  EXPECT_EQ(kinds(folder_ / "one.onnx", folder_ / "untold"), std::vector<std::string>{"logits"});
}

// Of the verb over that of the file, output by output.
TEST_F(RecordedOutputs, GiveWayToWhatIsSaidNow) {
  auto file = formats::onnx::read(folder_ / "one.onnx");
  const auto meanings = [&](const std::string& record, std::vector<NamedMeaning> given) {
    file.metadata = {{kOutputsRecord, record}};
    formats::onnx::write(folder_ / "recorded.onnx", file);
    ModelSettings settings;
    settings.output = std::move(given);
    take_recorded_outputs(folder_ / "recorded.onnx", settings);
    std::map<std::string, OutputMeaning> found;
    for (const auto& [output, meaning] : settings.output) found[output] = meaning;
    return found;
  };
  using M = OutputMeaning;
  using Found = std::map<std::string, M>;
  const std::string both = R"({"a":"map","b":"scores"})";
  EXPECT_EQ(meanings(both, {}), (Found{{"a", M::map}, {"b", M::scores}}));
  EXPECT_EQ(meanings(both, {{"a", M::values}}), (Found{{"a", M::values}, {"b", M::scores}}));
  EXPECT_EQ(meanings(both, {{"", M::values}}), (Found{{"", M::values}}));
  EXPECT_EQ(meanings(R"({"":"map"})", {{"a", M::values}}), (Found{{"a", M::values}, {"", M::map}}));
  for (const char* wrong : {"values", R"(["map"])", R"({"a":"boxes"})", R"({"a":1})"}) {
    const std::string message =
        test::error_message(ErrorCode::bad_input, [&] { meanings(wrong, {}); });
    EXPECT_NE(message.find(kOutputsRecord), std::string::npos) << wrong << ": " << message;
  }
}

}  // namespace
}  // namespace zsq::pipeline
