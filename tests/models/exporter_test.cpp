// SPDX-License-Identifier: Apache-2.0
#include "models/exporter.h"

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "models/load.h"
#include "tests/models/onnx_file.h"
#include "tests/support/networks.h"

namespace zsq::models {
namespace {

Model written_by(const std::string& producer, const std::string& node) {
  Model model;
  model.format = "onnx";
  model.producer = producer;
  model.graph.add({"input", Input{}, {}});
  model.graph.add({node, Conv2d{}, {0}});
  return model;
}

TEST(Exporter, OfPyTorchGetsTheLineOfItsVersion) {
  const auto line = [](const char* version) {
    return exporter_of(written_by(std::string("pytorch ") + version, "/conv1/Conv")).export_line;
  };
  EXPECT_NE(line("2.11.0").find("dynamo=False, training="), std::string::npos);
  EXPECT_NE(line("2.11.0").find("opset_version=17"), std::string::npos);
  EXPECT_EQ(line("2.4.1").find("dynamo"), std::string::npos);
  EXPECT_NE(line("1.10").find("opset_version=13"), std::string::npos);
  EXPECT_NE(
      exporter_of(written_by("pytorch 2.9.0", "node_Conv_3")).export_line.find("optimize=False"),
      std::string::npos);
}

TEST(Exporter, WithoutAnOptionIsSaid) {
  const auto found = exporter_of(written_by("tf2onnx 1.16.1", "model/conv1/Conv2D"));
  EXPECT_EQ(found.name, "tf2onnx");
  EXPECT_EQ(found.version, "1.16.1");
  EXPECT_EQ(found.export_line, "");
  EXPECT_NE(found.advice.find("--bn_stats"), std::string::npos);
}

// A line of another exporter would not make the file that is wanted.
TEST(Exporter, ThatIsNotKnownHasNoLine) {
  for (const char* producer : {"", "onnx-simplifier 0.4", "PaddlePaddle 2.5"}) {
    const Model model = written_by(producer, "conv1");
    EXPECT_EQ(exporter_of(model).export_line, "") << producer;
    EXPECT_EQ(inspect_batch_norm(model).explanation.find("torch.onnx"), std::string::npos);
  }
}

// Names as PyTorch 2.11 and tf2onnx 1.16 wrote them.
struct Convolution {
  const char *node, *weight, *bias;
  float value;  // of the bias
  bool folded;
};
TEST(Exporter, NamesTellWhichConvolutionsWereFolded) {
  for (const auto& [node, weight, bias, value, folded] :
       {Convolution{"/a/Conv", "onnx::Conv_41", "onnx::Conv_42", 1, true},
        {"/short/Conv", "short.weight", "short.bias", 1, false},
        {"/ws/Conv", "onnx::Conv_41", "ws.bias", 1, false},  // a standardised weight
        {"Conv_0", "123", "124", 1, true},
        {"node_Conv_49", "a.weight", "a.weight_bias", 1, true},
        {"node_Conv_50", "b.weight", "b.bias", 1, true},
        {"node_conv2d_2", "short.weight", "short.bias", 1, false},
        {"node_conv2d_3", "short2.weight", "val_24", 0, false},
        {"model/a/Conv2D", "w", "model/a/BiasAdd/ReadVariableOp:0", 1, false},
        {"model/a/Conv2D", "w", "model/bn/FusedBatchNormV3_bias_fused_bn", 1, true},
        {"conv", "a.weight", "bias_7", 1, true},
        {"conv", "a.weight", "bias_7", 0, false}}) {
    Model model;
    model.graph.add({"input", Input{}, {}});
    model.graph.add({node, Conv2d{}, {0}, {{"weight", weight}, {"bias", bias}}});
    model.parameters.set(bias, at::full({2}, value));
    EXPECT_EQ(count_batch_norm(model).look_folded.size(), folded ? 1U : 0U) << node << " " << bias;
    EXPECT_EQ(name_of(inspect_batch_norm(model).kind), folded ? "folded" : "none") << bias;
  }
}

// As PyTorch 2.11 writes them by torch.export with optimize=True: BatchNorm is gone from "a", whose
// bias keeps its name. Layers are named after their modules, so the node's name is lost on reading.
TEST(Exporter, FoldsOfConvolutionsWithABiasAreSeenInFiles) {
  test::OnnxFile file(20, {2, 5, 5});
  file.file.producer_name = "pytorch";
  for (const char* layer : {"a", "b"}) {
    const std::string module = layer;
    file.initializer(module + ".weight", at::ones({2, 2, 1, 1}))
        .initializer(module + ".bias", at::ones({2}));
  }
  file.node("Conv", {"x", "a.weight", "a.bias"}, {"Conv_50"})
      .node("Conv", {"Conv_50", "b.weight", "b.bias"}, {"conv2d_1"})
      .node("Relu", {"conv2d_1"}, {"y"});
  const auto model = file.import();
  const auto census = count_batch_norm(model);
  EXPECT_EQ(census.look_folded, std::vector<std::string>{"a"});
  EXPECT_EQ(census.without, std::vector<std::string>{"b"});
  EXPECT_EQ(name_of(inspect_batch_norm(model).kind), "folded");
  EXPECT_TRUE(file.run(at::ones({1, 2, 5, 5})).eq(7).all().item<bool>());
}

// Files that PyTorch's exporters wrote, by what was asked of them.
struct File {
  const char *name, *kind;
  std::size_t folded, without;
  const char* line;
};

TEST(Exporter, IsReadFromItsFiles) {
  ZSQ_SKIP_WITHOUT_NETWORKS();
  for (const auto& [name, kind, folded, without, line] :
       {File{"resnet20_random.onnx", "usable", 0, 0, "dynamo=False"},
        File{"resnet20_random_folded.onnx", "folded", 21, 0, "TrainingMode.PRESERVE"},
        File{"resnet20_random_dynamo.onnx", "usable", 0, 0, "dynamo=True, optimize=False"},
        File{"resnet20_random_dynamo_folded.onnx", "folded", 21, 0, "dynamo=True, optimize=False"},
        File{"resnet20_random.pt2", "usable", 0, 0, "torch.export.save"},
        File{"resnet20_random.traced.pt", "usable", 0, 0, "torch.jit.trace"},
        File{"resnet20_padded.folded.pt", "none", 0, 19, "optimize_numerics=False"},
        File{"mobilenet_v3_small_dynamo.onnx", "usable", 0, 18, "dynamo=True"}}) {
    SCOPED_TRACE(name);
    const Model model = load(test::network_path(name), {.image_size = {32, 32}});
    EXPECT_EQ(name_of(inspect_batch_norm(model).kind), kind);
    const auto census = count_batch_norm(model);
    EXPECT_EQ(census.look_folded.size(), folded);
    EXPECT_EQ(census.without.size(), without);
    EXPECT_NE(exporter_of(model).export_line.find(line), std::string::npos);
  }
  EXPECT_EQ(exporter_of(load(test::network_path("resnet20_random.onnx"))).version, "2.11.0");
}

}  // namespace
}  // namespace zsq::models
