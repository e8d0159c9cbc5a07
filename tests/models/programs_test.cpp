// SPDX-License-Identifier: Apache-2.0
// Programs that PyTorch wrote, against what PyTorch computes: traced, scripted, scripted and
// frozen, exported, exported and decomposed.
#include "models/programs.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "formats/npy.h"
#include "models/execute.h"
#include "tests/models/arrays.h"
#include "tests/models/script.h"
#include "tests/support/networks.h"
#include "tests/support/shared.h"
#include "tests/support/temp_folder.h"

namespace zsq::models {
namespace {

namespace fs = std::filesystem;
using test::network_path;

// The largest difference from `truth`, as a share of its largest value.
double error_of(const Model& model, const at::Tensor& input, const at::Tensor& truth) {
  const at::NoGradGuard no_grad;
  const auto result = execute(model.graph, model.parameters, input).to(at::kDouble);
  EXPECT_EQ(result.sizes(), truth.sizes());
  return ((result - truth).abs().max() / truth.abs().max()).item<double>();
}

// The image size is that of the file, or has to be given if the file does not tell.
LoadOptions options_for(const std::string& file, const at::Tensor& input) {
  const bool told = file.ends_with(".pt2") || file.ends_with(".traced.pt");
  return test::sized(told ? 0 : input.size(2));
}

class Programs : public testing::TestWithParam<const char*> {};

TEST_P(Programs, ComputeWhatPyTorchComputes) {
  ZSQ_SKIP_WITHOUT_NETWORKS();
  const std::string file = GetParam();
  const auto truth = formats::read_npz(network_path(file.substr(0, file.find('.')) + ".npz"));
  const auto input = array(truth, "input");
  const auto model = load(network_path(file), options_for(file, input));
  EXPECT_LT(error_of(model, input, array(truth, "output_f64")), 1e-4);
  EXPECT_EQ(model.classes, 10);
  EXPECT_TRUE(model.warnings.empty());
  const auto batch_norms = array(truth, "batch_norms");
  const auto* counts = batch_norms.const_data_ptr<std::int64_t>();
  const auto verdict = inspect_batch_norm(model);
  EXPECT_EQ(verdict.layers, counts[0]);
  EXPECT_EQ(verdict.channels, counts[1]);
  EXPECT_EQ(verdict.negative_gammas, counts[2]);
}

std::string test_name(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  for (auto& c : name) c = c == '.' ? '_' : c;
  return name;
}

#define ZSQ_PROGRAMS_OF(name) \
  name ".traced.pt", name ".traced_frozen.pt", name ".pt2", name ".decomposed.pt2"
#define ZSQ_SCRIPTS_OF(name) ZSQ_PROGRAMS_OF(name), name ".scripted.pt", name ".frozen.pt"

INSTANTIATE_TEST_SUITE_P(
    Importer, Programs,
    testing::Values(ZSQ_PROGRAMS_OF("resnet18_w25"), ZSQ_SCRIPTS_OF("resnet20_padded"),
                    ZSQ_SCRIPTS_OF("mobilenet_v2_w35"), ZSQ_SCRIPTS_OF("mobilenet_v3_small"),
                    ZSQ_SCRIPTS_OF("shufflenet_v2_x0_5"), ZSQ_SCRIPTS_OF("densenet_tiny"),
                    ZSQ_SCRIPTS_OF("regnet_se_tiny"), ZSQ_SCRIPTS_OF("se_silu_tiny"),
                    ZSQ_SCRIPTS_OF("vgg_bn_tiny")),
    test_name);

// Weights keep the names that they have in the module, so layers do as well.
TEST(ProgramNames, LayersAreNamedAfterTheirModules) {
  ZSQ_SKIP_WITHOUT_NETWORKS();
  for (const auto* kind : {".traced.pt", ".pt2", ".decomposed.pt2"}) {
    const auto model = load(network_path(std::string("resnet20_padded") + kind));
    const auto& conv = model.graph[model.graph.id_of("layer2.1.conv1")];
    EXPECT_TRUE(is<Conv2d>(conv)) << kind;
    EXPECT_EQ(conv.params.at("weight"), "layer2.1.conv1.weight") << kind;
    EXPECT_TRUE(is<Linear>(model.graph[model.graph.id_of("linear")])) << kind;
  }
}

TEST(ProgramNames, TheFormatAndItsWriterAreNamed) {
  ZSQ_SKIP_WITHOUT_NETWORKS();
  EXPECT_EQ(load(network_path("resnet20_padded.traced.pt")).format, "torchscript");
  const auto exported = load(network_path("resnet20_padded.pt2"));
  EXPECT_EQ(exported.format, "pt2");
  EXPECT_EQ(exported.producer.rfind("pytorch 2.", 0), 0u) << exported.producer;
}

// A network that the content names, whatever the file is called.
TEST(ProgramNames, TheContentDecidesWhatAFileIs) {
  ZSQ_SKIP_WITHOUT_NETWORKS();
  const test::TempFolder folder;
  for (const auto& [kind, format] : {std::pair{".traced.pt", "torchscript"}, {".pt2", "pt2"}}) {
    const auto path = folder / "model.bin";
    fs::copy_file(network_path(std::string("resnet20_padded") + kind), path,
                  fs::copy_options::overwrite_existing);
    EXPECT_EQ(load(path).format, format);
  }
}

TEST(ProgramSizes, AnotherImageSizeCanBeGiven) {
  ZSQ_SKIP_WITHOUT_NETWORKS();
  const auto model = load(network_path("mobilenet_v2_w35.traced.pt"), test::sized(96));
  EXPECT_EQ(model.graph.input_shape, (std::array<std::int64_t, 3>{3, 96, 96}));
}

TEST(ProgramSizes, AnOpenImageSizeIsAskedFor) {
  ZSQ_SKIP_WITHOUT_NETWORKS();
  try {
    load(network_path("mobilenet_v2_w35.frozen.pt"));
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
    EXPECT_NE(std::string(error.what()).find("give the image size"), std::string::npos);
  }
}

// torch.jit.freeze folds BatchNorm by default.
TEST(ProgramBatchNorm, FoldedOnesAreRefusedWithTheLineThatKeepsThem) {
  ZSQ_SKIP_WITHOUT_NETWORKS();
  const auto model = load(network_path("resnet20_padded.folded.pt"), test::sized(32));
  try {
    require_batch_norm(model);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported_model);
    const std::string text = error.what();
    EXPECT_NE(text.find("optimize_numerics=False"), std::string::npos) << text;
    EXPECT_EQ(text.find("torch.onnx.export"), std::string::npos) << text;
  }
}

// One network in each container, written elsewhere.
TEST(SharedPrograms, ComputeWhatOnnxruntimeComputes) {
  const auto folder = test::shared_path("importer");
  ZSQ_SKIP_WITHOUT(folder);
  const auto truth = formats::read_npz(folder / "resnet20_random.npz");
  for (const auto* file : {"resnet20_random.traced.pt", "resnet20_random.pt2"}) {
    const auto model = load(folder / file);
    EXPECT_LT(error_of(model, array(truth, "input"), array(truth, "output_f64")), 1e-4) << file;
    EXPECT_EQ(inspect_batch_norm(model).layers, 21) << file;
  }
}

}  // namespace
}  // namespace zsq::models
