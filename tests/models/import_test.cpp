// SPDX-License-Identifier: Apache-2.0
// Real exported networks against onnxruntime's answers, stored beside them.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "formats/npy.h"
#include "models/execute.h"
#include "models/load.h"
#include "tests/support/shared.h"
#include "tests/support/temp_folder.h"

namespace zsq::models {
namespace {

using test::shared_path;

at::Tensor array(const formats::NamedArrays& arrays, const std::string& name) {
  const auto* found = formats::find(arrays, name);
  if (!found) throw std::runtime_error("no array " + name);
  return to_tensor(*found);
}

struct Case {
  const char* name;
  std::int64_t batch_norms;
};
std::ostream& operator<<(std::ostream& stream, const Case& c) { return stream << c.name; }

class Exported : public testing::TestWithParam<Case> {};

TEST_P(Exported, ComputesWhatOnnxruntimeComputes) {
  const auto path = shared_path("importer/" + std::string(GetParam().name) + ".onnx");
  ZSQ_SKIP_WITHOUT(path);
  const at::NoGradGuard no_grad;
  const auto model = load(path);
  const auto truth = formats::read_npz(std::filesystem::path(path).replace_extension(".npz"));
  const auto result = execute(model.graph, model.parameters, array(truth, "input"));
  const auto expected = array(truth, "output");
  ASSERT_EQ(result.sizes(), expected.sizes());
  EXPECT_LT((result - expected).abs().max().item<double>(),
            array(truth, "tolerance").item<double>());
  EXPECT_EQ(model.classes, 10);
  const auto verdict = inspect_batch_norm(model);
  EXPECT_EQ(verdict.kind, BatchNormVerdict::Kind::usable);
  EXPECT_EQ(verdict.layers, GetParam().batch_norms);
  EXPECT_NO_THROW(require_batch_norm(model));
}

INSTANTIATE_TEST_SUITE_P(Importer, Exported,
                         testing::Values(Case{"resnet18_w25", 21}, Case{"resnet14_bottleneck", 16},
                                         Case{"mobilenet_v2_w35", 52},
                                         Case{"shufflenet_v2_x0_5", 56},
                                         Case{"mobilenet_v3_small", 34}, Case{"densenet_tiny", 25},
                                         Case{"regnet_se_tiny", 28}, Case{"vgg_bn_tiny", 5},
                                         Case{"resnet20_random", 21}, Case{"resnet10_dynamo", 13}),
                         [](const auto& info) { return std::string(info.param.name); });

std::string refusal(const Model& model) {
  try {
    require_batch_norm(model);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported_model);
    return error.what();
  }
  return "accepted";
}

void expect_refused(const std::string& file, BatchNormVerdict::Kind kind,
                    const std::string& cause) {
  const auto path = shared_path(file);
  ZSQ_SKIP_WITHOUT(path);
  const auto model = load(path);
  EXPECT_EQ(inspect_batch_norm(model).kind, kind);
  const auto text = refusal(model);
  for (const auto* part : {"pytorch 2.11.0", "TrainingMode.PRESERVE", "do_constant_folding=False",
                           cause.c_str(), path.c_str()}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
  }
}

TEST(BatchNorm, FoldedOnesAreRefusedWithTheExportLine) {
  using Kind = BatchNormVerdict::Kind;
  expect_refused("importer/neg_resnet_folded.onnx", Kind::folded, "folded");
  expect_refused("models/resnet20_cifar10_folded.onnx", Kind::folded, "folded");
}

TEST(BatchNorm, NetworksWithoutAnyAreRefused) {
  expect_refused("importer/neg_vgg_nobn.onnx", BatchNormVerdict::Kind::none, "no BatchNorm");
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
