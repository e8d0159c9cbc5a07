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

}  // namespace
}  // namespace zsq::models
