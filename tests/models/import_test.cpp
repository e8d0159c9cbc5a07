// SPDX-License-Identifier: Apache-2.0
// Networks that PyTorch's exporters wrote, against the answers of onnxruntime beside them.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "formats/npy.h"
#include "models/execute.h"
#include "models/load.h"
#include "tests/models/arrays.h"
#include "tests/support/networks.h"
#include "tests/support/temp_folder.h"

namespace zsq::models {
namespace {

namespace fs = std::filesystem;
using test::network_path;

// A file of build/networks; the answers are those of the network before the first '.', and before
// the exporter's name.
class Exported : public testing::TestWithParam<const char*> {};

fs::path answers_of(const std::string& name) {
  auto network = name.substr(0, name.find("_dynamo"));
  network = network.substr(0, network.find("_opset"));
  return network_path(network + ".npz");
}

TEST_P(Exported, ComputesWhatOnnxruntimeComputes) {
  ZSQ_SKIP_WITHOUT_NETWORKS();
  const at::NoGradGuard no_grad;
  const std::string name = GetParam();
  const auto model = load(network_path(name + ".onnx"));
  const auto truth = formats::read_npz(answers_of(name));
  const auto result = execute(model.graph, model.parameters, array(truth, "input"));
  const auto expected = array(truth, "output");
  ASSERT_EQ(result.sizes(), expected.sizes());
  EXPECT_LT((result - expected).abs().max().item<double>(),
            array(truth, "tolerance").item<double>());
  EXPECT_EQ(model.classes, expected.size(1));
  const auto verdict = inspect_batch_norm(model);
  EXPECT_EQ(verdict.kind, BatchNormVerdict::Kind::usable);
  const auto batch_norms = array(truth, "batch_norms");
  const auto* counts = batch_norms.const_data_ptr<std::int64_t>();
  EXPECT_EQ(verdict.layers, counts[0]);
  EXPECT_EQ(verdict.channels, counts[1]);
  EXPECT_EQ(verdict.negative_gammas, counts[2]);
  EXPECT_NO_THROW(require_batch_norm(model));
}

INSTANTIATE_TEST_SUITE_P(
    Importer, Exported,
    testing::Values("resnet18_w25", "resnet18_w25_dynamo", "resnet14_bottleneck",
                    "resnet14_bottleneck_dynamo", "resnet20_random", "resnet20_random_dynamo",
                    "resnet20_padded", "resnet20_padded_dynamo", "mobilenet_v2_w35",
                    "mobilenet_v2_w35_dynamo", "mobilenet_v3_small", "mobilenet_v3_small_dynamo",
                    "shufflenet_v2_x0_5", "shufflenet_v2_x0_5_dynamo", "shufflenet_v2_x0_5_opset9",
                    "shufflenet_v2_x0_5_opset11", "shufflenet_v2_x0_5_opset13",
                    "shufflenet_v2_x0_5_opset15", "shufflenet_v2_x0_5_opset20", "densenet_tiny",
                    "densenet_tiny_dynamo", "regnet_se_tiny", "regnet_se_tiny_dynamo",
                    "se_silu_tiny", "se_silu_tiny_dynamo", "vgg_bn_tiny", "vgg_bn_tiny_dynamo",
                    "efficientnet_lite0"),
    [](const auto& info) { return std::string(info.param); });

std::string refusal(const Model& model) {
  try {
    require_batch_norm(model);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported_model);
    return error.what();
  }
  return "accepted";
}

void expect_refused(const std::string& file, BatchNormVerdict::Kind kind, const std::string& cause,
                    const std::string& option = "training=torch.onnx.TrainingMode.PRESERVE") {
  const auto path = network_path(file);
  const auto model = load(path);
  EXPECT_EQ(inspect_batch_norm(model).kind, kind);
  const auto text = refusal(model);
  for (const auto* part :
       {"pytorch 2.11.0", "torch.onnx.export(", option.c_str(), cause.c_str(), path.c_str()}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
  }
}

TEST(BatchNorm, FoldedOnesAreRefusedWithTheExportLine) {
  ZSQ_SKIP_WITHOUT_NETWORKS();
  using Kind = BatchNormVerdict::Kind;
  expect_refused("resnet20_random_folded.onnx", Kind::folded, "folded");
  expect_refused("resnet20_random_dynamo_folded.onnx", Kind::folded, "folded",
                 "dynamo=True, optimize=False");
}

TEST(BatchNorm, NetworksWithoutAnyAreRefusedWhereItIsRequired) {
  ZSQ_SKIP_WITHOUT_NETWORKS();
  const auto model = load(network_path("vgg_nobn.onnx"));
  EXPECT_EQ(inspect_batch_norm(model).kind, BatchNormVerdict::Kind::none);
  const auto text = refusal(model);
  for (const auto* part : {"pytorch 2.11.0", "no BatchNorm", "vgg_nobn.onnx", "trained without"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
  // No export line brings back what never was.
  EXPECT_EQ(text.find("torch.onnx.export("), std::string::npos) << text;
  EXPECT_EQ(text.find("take the place"), std::string::npos) << text;
}

// ConvNeXt: LayerNorm over channels, GELU, linear layers over maps, a scale per channel that
// becomes part of the layer before it.
TEST(BatchNorm, NetworksWithoutAnyComputeWhatPyTorchDoes) {
  ZSQ_SKIP_WITHOUT_NETWORKS();
  const at::NoGradGuard no_grad;
  const auto truth = formats::read_npz(network_path("convnext_tiny.npz"));
  for (const auto* kind : {".onnx", ".traced.pt", ".traced_frozen.pt", ".scripted.pt", ".frozen.pt",
                           ".folded.pt", ".pt2"}) {
    const auto model =
        load(network_path(std::string("convnext_tiny") + kind), {.image_size = {64, 64}});
    const auto result = execute(model.graph, model.parameters, array(truth, "input"));
    EXPECT_LT((result - array(truth, "output")).abs().max().item<double>(),
              array(truth, "tolerance").item<double>())
        << kind;
    for (const auto& node : model.graph.nodes) EXPECT_FALSE(is<Mul>(node)) << kind;
    EXPECT_EQ(inspect_batch_norm(model).layers, 0) << kind;
  }
}

// The newer exporter appends to the weight's name, and drops biases that are zero.
TEST(BatchNorm, MadeUpBiasNamesMeanFolded) {
  Model model;
  model.graph.add({"input", Input{}, {}});
  model.graph.add({"a", Conv2d{}, {0}, {{"weight", "a.weight"}, {"bias", "a.weight_bias"}}});
  model.graph.add({"b", Conv2d{}, {1}, {{"weight", "b.weight"}}});
  EXPECT_EQ(inspect_batch_norm(model).kind, BatchNormVerdict::Kind::folded);
  model.graph[1].params["bias"] = "a.bias";
  EXPECT_EQ(inspect_batch_norm(model).kind, BatchNormVerdict::Kind::none);
  // Biases may be what is left of one, whatever their names.
  model.format = "onnx";
  model.producer = "pytorch 2.11.0";
  EXPECT_EQ(inspect_batch_norm(model).explanation.find("trained without"), std::string::npos);
  model.graph[1].params.erase("bias");
  EXPECT_NE(inspect_batch_norm(model).explanation.find("trained without"), std::string::npos);
}

// What load() says about `bytes` in a file.
std::string load_error(const std::string& bytes) {
  const test::TempFolder folder;
  const auto path = folder.file("file.bin", bytes);
  try {
    load(path);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_NE(std::string(error.what()).find(path.filename().string()), std::string::npos);
    return error.what();
  }
  return "accepted";
}

TEST(Load, SaysWhatIsWrongWithAFile) {
  EXPECT_NE(load_error("").find("empty"), std::string::npos);
  EXPECT_NE(load_error("GIF89a, no network at all").find("unknown format"), std::string::npos);
  EXPECT_NE(load_error(std::string("\x1c\0\0\0TFL3 and so on", 18)).find("LiteRT"),
            std::string::npos);
  EXPECT_NE(load_error("\x89HDF\r\n\x1a\n and so on").find("tf2onnx"), std::string::npos);
  EXPECT_NE(load_error(std::string("\x08\x08\xff\xff", 4)), "accepted");
  EXPECT_NE(load_error("PK, but not an archive"), "accepted");
  const std::string header = "{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}  ";
  const auto weights = std::string(1, static_cast<char>(header.size())) + std::string(7, '\0') +
                       header + std::string(4, '\0');
  EXPECT_NE(load_error(weights).find("--arch"), std::string::npos);
  EXPECT_THROW(load("no_such_folder/no_such_file.onnx"), Error);
  EXPECT_THROW(load(test::TempFolder().path()), Error);
}

}  // namespace
}  // namespace zsq::models
