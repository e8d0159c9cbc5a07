// SPDX-License-Identifier: Apache-2.0
// report.json as other programs rely on it, and a report.html that needs no network.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "pipeline/quantize.h"

namespace zsq {
namespace {

QuantizeReport sample() {
  QuantizeReport report;
  report.model = "nets/a<b>&\"c\".onnx";
  report.scheme = "W4A4";
  report.mode = "deploy";
  report.recipe = "deploy";
  report.target = "onnxruntime";
  report.tool_version = "1.2.3";
  report.source_sha256 = "00ff";
  report.weights = "per_channel";
  report.seed = 7;
  report.first_last_bits = 8;
  report.iterations = 100;
  report.fp32_bytes = 4000;
  report.quantized_bytes = 600;
  LayerResult layer;
  layer.name = "conv\xff<1>";  // not UTF-8, as a name in a file may be
  layer.op = "Conv2d";
  layer.weight_bits = layer.activation_bits = 4;
  layer.scale = {0.5, 0.25};
  layer.zero_point = {0, -1};
  layer.crossings = 1e-3;
  layer.weight_range = {-0.75, 0.5};
  layer.input_range = Range{0, 6.5};
  report.layers = {layer};
  return report;
}

TEST(Report, JsonHoldsTheContract) {
  const auto json = nlohmann::json::parse(to_json(sample()));
  for (const char* key :
       {"scheme", "mode", "recipe", "seed", "tool_version", "source_sha256", "setting",
        "iterations", "seconds", "size", "teacher", "student", "agreement", "layers"})
    EXPECT_TRUE(json.contains(key)) << key;
  for (const char* key : {"weights", "activations", "first_last_bits", "float_tensors"})
    EXPECT_TRUE(json["setting"].contains(key)) << key;
  EXPECT_EQ(json["size"]["fp32_bytes"], 4000);
  EXPECT_EQ(json["size"]["quantized_bytes"], 600);
  for (const char* key :
       {"name", "op", "weight_bits", "activation_bits", "scale", "zero_point", "crossings"})
    EXPECT_TRUE(json["layers"][0].contains(key)) << key;
  EXPECT_EQ(json["layers"][0]["scale"], nlohmann::json({0.5, 0.25}));
  EXPECT_EQ(json["layers"][0]["weight_range"], nlohmann::json({-0.75, 0.5}));
  EXPECT_EQ(json["layers"][0]["input_range"], nlohmann::json({0, 6.5}));
}

TEST(Report, JsonIsNullWhereNothingWasMeasured) {
  QuantizeReport report = sample();
  auto json = nlohmann::json::parse(to_json(report));
  EXPECT_TRUE(json["teacher"]["top1"].is_null());
  EXPECT_TRUE(json["student"]["images"].is_null());
  EXPECT_TRUE(json["agreement"].is_null());
  EXPECT_TRUE(json["kept"].is_null());
  report.kept = BestCheckpointResult{40, 11, 256, 1.5, {0.5, 0.7}, {0.25, 0.8}, {2, 0.3}};
  json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json["kept"]["iteration"], 40);
  EXPECT_EQ(json["kept"]["kept"]["divergence"], 0.25);
  EXPECT_EQ(json["kept"]["start"]["agreement"], 0.7);
  EXPECT_EQ(json["kept"]["last"]["divergence"], 2);
  EXPECT_NE(to_html(report).find("of iteration 40: divergence 0.25 nats on 256"),
            std::string::npos);
  report.student = Accuracy{91.5, 99.5, 1000};
  report.agreement = 0.75;
  json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json["student"]["top1"], 91.5);
  EXPECT_EQ(json["student"]["images"], 1000);
  EXPECT_EQ(json["agreement"], 0.75);
}

TEST(Report, HtmlIsOnePageWithNamesEscaped) {
  const std::string html = to_html(sample());
  EXPECT_NE(html.find("a&lt;b&gt;&amp;&quot;c&quot;.onnx"), std::string::npos);
  EXPECT_EQ(html.find("a<b>"), std::string::npos);
  EXPECT_EQ(html.find("<1>"), std::string::npos);
  EXPECT_NE(html.find("<svg"), std::string::npos);
  EXPECT_NE(html.find("6.7 times smaller"), std::string::npos);
  for (const char* fetched : {"http:", "https:", "src=\"h", "href=", "url(", "@import"})
    EXPECT_EQ(html.find(fetched), std::string::npos) << fetched;
}

}  // namespace
}  // namespace zsq
