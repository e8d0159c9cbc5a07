// SPDX-License-Identifier: Apache-2.0
// What `zsq inspect` says of files that hold weights only, and of what became of BatchNorm.
#include <nlohmann/json.hpp>

#include "formats/onnx.h"
#include "formats/safetensors.h"
#include "models/load.h"
#include "tests/cli/program.h"
#include "tests/support/networks.h"

namespace zsq {
namespace {

TEST_F(Cli, ArchitecturesAreListedWithTheirSources) {
  const Outcome table = run("inspect --list_archs");
  for (const char* part : {"resnet34", "21797672", "arXiv 1512.03385", "mobilenetv2_100", "timm"})
    EXPECT_NE(table.out.find(part), std::string::npos) << part;
  const auto json = nlohmann::json::parse(run("inspect --list_archs --format json").out);
  EXPECT_GT(json["architectures"].size(), 60U);
  for (const auto& row : json["architectures"]) EXPECT_GE(row["image_size"], 32) << row;
}

TEST_F(Cli, AFolderOfHuggingFaceIsANetworkWithItsPreprocessing) {
  const fs::path folder = folder_ / "hub";
  fs::create_directory(folder);
  std::ofstream(folder / "config.json")
      << R"({"architecture": "regnetx_002.pycls_in1k", "num_classes": 1000,
             "pretrained_cfg": {"input_size": [3, 64, 64], "crop_pct": 0.9,
                                "interpolation": "bicubic"}})";
  formats::NamedArrays state;
  const auto model = models::build("regnetx_002", {}, {.implementation = "timm"});
  for (const auto& name : model.parameters.names())
    state.emplace_back(name, models::to_array(model.parameters.at(name)));
  formats::write_safetensors(folder / "model.safetensors", {state, {}});

  const auto report = nlohmann::json::parse(run("inspect --format json " + folder.string()).out);
  EXPECT_EQ(report["format"], "hugging_face");
  EXPECT_EQ(report["parameters"], 2684792);
  EXPECT_EQ(report["input_shape"], nlohmann::json({3, 64, 64}));
  const Outcome images = run("generate " + folder.string() + " -n 2 --form safetensors -o " +
                             path("images") + " --set generate.images.source=dead_leaves");
  EXPECT_EQ(images.code, 0) << images.err;
  EXPECT_NE(images.err.find("preprocessing: as " + folder.string()), std::string::npos)
      << images.err;
}

// ONNX means the statistics of the batch; zsq takes those of inference, and says so once.
TEST_F(Cli, BatchNormInTrainingModeIsSaid) {
  auto file = formats::onnx::read(tiny().model);
  std::size_t layers = 0;
  for (auto& node : file.graph.nodes) {
    if (node.op_type != "BatchNormalization") continue;
    node.attributes.push_back({"training_mode", std::int64_t{1}});
    ++layers;
  }
  ASSERT_GT(layers, 1U);
  formats::onnx::write(folder_ / "training.onnx", file);
  const std::string note = std::to_string(layers) +
                           " BatchNormalization nodes ('stem.bn', ...) were exported in training "
                           "mode; their running statistics are used, as in inference\n";
  const Outcome found = run("inspect " + path("training.onnx"));
  EXPECT_NE(found.out.find("note        " + note), std::string::npos) << found.out;
  // Once, whether a run is quiet or not.
  const std::string command = "quantize " + path("training.onnx") +
                              " --recipe instant --preset cifar10 --threads 1 --set "
                              "process.agreement_images=0 -o " +
                              path("training");
  const Outcome quantized = run(command);
  EXPECT_NE(quantized.err.find("warning: " + note), std::string::npos) << quantized.err;
  EXPECT_EQ(quantized.out.find(note), std::string::npos) << quantized.out;
  const Outcome quiet = run(command + " --quiet");
  EXPECT_EQ(quiet.err.find(note), std::string::npos) << quiet.err;
  EXPECT_NE(quiet.out.find("note       " + note), std::string::npos) << quiet.out;
}

TEST_F(Cli, TheDoctorNamesExporterAndCure) {
  ZSQ_SKIP_WITHOUT_NETWORKS();
  const Outcome folded =
      run("inspect --doctor " + test::network_path("resnet20_random_folded.onnx").string());
  EXPECT_EQ(folded.code, 0) << folded.err;
  for (const char* part : {"2.11.0", "folded", "torch.onnx.export", "--bn_stats", "synthetic"})
    EXPECT_NE(folded.out.find(part), std::string::npos) << folded.out;
  const Outcome healthy = run("inspect --doctor " + tiny().model.string());
  EXPECT_NE(healthy.out.find("usable"), std::string::npos) << healthy.out;
  EXPECT_EQ(healthy.out.find("What to do"), std::string::npos) << healthy.out;
}

}  // namespace
}  // namespace zsq
