// SPDX-License-Identifier: Apache-2.0
#include "pipeline/images/missing_batch_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "models/execute.h"
#include "pipeline/doctor.h"
#include "pipeline/images/image_job.h"
#include "pipeline/quantize.h"
#include "pipeline/session/session.h"
#include "tests/support/error_message.h"
#include "tests/support/network_builder.h"
#include "tests/support/networks.h"
#include "tests/support/temp_folder.h"

namespace zsq::pipeline::missing_batch_norm_test {
namespace {

struct Listener : Observer {
  void on_message(LogLevel level, const std::string& message) override {
    if (level == LogLevel::warning) warnings += message + "\n";
  }
  std::string warnings;
};

models::Model without_batch_norm() {
  test::NetworkBuilder net;
  auto x = net.relu("a.relu", net.conv("a", net.input(), 3, 8, 3, 1, true));
  x = net.relu("b.relu", net.conv("b", x, 8, 8, 3, 1, true));
  x = net.op("flatten", models::Flatten{}, {net.op("pool", models::GlobalAvgPool{}, {x})});
  return net.finish(net.linear("fc", x, 8, 10), 10);
}

TEST(MissingBatchNorm, IsRefusedWhereItIsRequired) {
  models::Model model = without_batch_norm();
  Recipe recipe = load_recipe("deploy", {"model.require_bn=true"});
  Observer silent;
  const auto message = test::error_message(ErrorCode::unsupported_model,
                                           [&] { require_statistics(model, recipe, silent); });
  EXPECT_NE(message.find("has no BatchNorm layers"), std::string::npos) << message;
  EXPECT_NE(message.find("--require_bn"), std::string::npos) << message;
  EXPECT_EQ(message.find("take the place"), std::string::npos) << message;  // they do not
}

TEST(MissingBatchNorm, IsReplacedByStatisticsOfDeadLeaves) {
  const models::Model before = without_batch_norm();
  models::Model model = before;
  Recipe recipe = load_recipe("deploy");
  Listener listener;
  require_statistics(model, recipe, listener);
  EXPECT_NE(listener.warnings.find("has no BatchNorm layers"), std::string::npos);
  EXPECT_NE(listener.warnings.find("Fine-tuning is left out"), std::string::npos);
  EXPECT_EQ(recipe.images.source, ImageSource::dead_leaves);
  EXPECT_EQ(recipe.finetune.iterations, 0);

  const auto images = procedural_images(before, recipe, 0, 512, 99);
  EXPECT_TRUE(at::allclose(infer(model.graph, model.parameters, images),
                           infer(before.graph, before.parameters, images), 1e-4, 1e-4));
  // Other dead leaves have about the same moments.
  models::Taps taps{models::batch_norm_inputs(model.graph), {}};
  ASSERT_EQ(taps.nodes.size(), 2U);
  models::execute(model.graph, model.parameters, images, &taps);
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string layer = i == 0 ? "a" : "b";
    const auto deviation = model.parameters.at(layer + ".bn.variance").sqrt();
    const auto mean_error =
        (taps.values[i].mean({0, 2, 3}) - model.parameters.at(layer + ".bn.mean")) / deviation;
    EXPECT_LT(mean_error.abs().max().item<double>(), 0.2) << layer;
    const auto ratio = taps.values[i].var({0, 2, 3}, false).sqrt() / deviation;
    EXPECT_LT((ratio - 1).abs().max().item<double>(), 0.2) << layer;
  }
}

// ConvNeXt as a whole: LayerNorm and GELU stay in float, everything else becomes integers.
TEST(MissingBatchNorm, ConvNeXtIsQuantizedAsAWhole) {
  ZSQ_SKIP_WITHOUT_NETWORKS();
  const test::TempFolder folder;
  QuantizeOptions options;
  options.recipe = load_recipe("instant", {"data.mean=0.5", "data.std=0.25",
                                           "process.agreement_images=16", "process.threads=1"});
  options.scheme = Scheme::parse("W8A8");
  const auto report = quantize(test::network_path("convnext_tiny.onnx"), options, folder / "out");
  ASSERT_TRUE(report.agreement);
  EXPECT_GE(*report.agreement, 0.9);
  EXPECT_LT(*report.divergence, 0.02);
  for (const auto& layer : report.layers) EXPECT_EQ(layer.executes_as, "int8") << layer.name;
  EXPECT_LT(report.quantized_bytes, report.fp32_bytes / 3);
}

// One BatchNorm of three: what is inferred for the others from one would be wrong.
TEST(MissingBatchNorm, AFewThatAreKeptAreCompleted) {
  test::NetworkBuilder net;
  auto x = net.conv_bn_relu("a", net.input(), 3, 8);
  x = net.relu("b.relu", net.conv("b", x, 8, 8, 3, 1, true));
  x = net.relu("c.relu", net.conv("c", x, 8, 8, 3, 1, true));
  x = net.op("flatten", models::Flatten{}, {net.op("pool", models::GlobalAvgPool{}, {x})});
  models::Model model = net.finish(net.linear("fc", x, 8, 10), 10);
  const at::Tensor mean = model.parameters.at("a.bn.mean").clone();
  Recipe recipe = load_recipe("deploy");
  Listener listener;
  require_statistics(model, recipe, listener);
  EXPECT_NE(listener.warnings.find("1 BatchNorm layers are there, and 2 convolutions have none"),
            std::string::npos)
      << listener.warnings;
  EXPECT_EQ(models::batch_norm_inputs(model.graph).size(), 3U);
  EXPECT_TRUE(at::equal(model.parameters.at("a.bn.mean"), mean));
  EXPECT_EQ(recipe.images.source, ImageSource::dead_leaves);
}

TEST(MissingBatchNorm, ANetworkWithBatchNormIsLeftAlone) {
  models::Model model = test::residual_network();
  Recipe recipe = load_recipe("deploy");
  const auto nodes = model.graph.nodes.size();
  Listener listener;
  require_statistics(model, recipe, listener);
  EXPECT_EQ(model.graph.nodes.size(), nodes);
  EXPECT_GT(recipe.finetune.iterations, 0);
  EXPECT_EQ(listener.warnings, "");
}

TEST(Doctor, NamesTheExporterAndWhatItDid) {
  ZSQ_SKIP_WITHOUT_NETWORKS();
  const auto folded = examine(test::network_path("resnet20_random_folded.onnx"));
  EXPECT_EQ(folded.verdict, "folded");
  EXPECT_EQ(folded.exporter_version, "2.11.0");
  EXPECT_EQ(folded.convolutions, 21);
  EXPECT_EQ(folded.look_folded.size(), 21U);
  const auto kept = examine(test::network_path("resnet20_random.onnx"));
  EXPECT_EQ(kept.explanation, "21 BatchNorm layers, one after each convolution");
  const auto json = nlohmann::json::parse(to_json(folded));
  EXPECT_EQ(json["verdict"], "folded");
  EXPECT_NE(json["export_line"].get<std::string>().find("PRESERVE"), std::string::npos);
}

}  // namespace
}  // namespace zsq::pipeline::missing_batch_norm_test
