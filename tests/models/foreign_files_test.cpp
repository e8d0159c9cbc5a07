// SPDX-License-Identifier: Apache-2.0
// Small networks of many forms that strangers' exporters write, each with what onnxruntime or
// PyTorch computes. They lie beside the repository.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/error.h"
#include "formats/npy.h"
#include "models/execute.h"
#include "models/file_layout.h"
#include "models/load.h"
#include "tests/models/arrays.h"
#include "tests/support/shared.h"

namespace zsq::models {
namespace {

// Refused by rule, or computed in another way that is said.
const std::map<std::string, std::string> kRefused{
    {"s07_gemm_rowbias_fixed_batch", "each image of the batch"},
    {"bn_var_nan", "NaN"},
};
const std::set<std::string> kOtherwise{"s12_bn_training_mode"};  // the running statistics

void expect_equal(const std::filesystem::path& path) {
  const at::NoGradGuard no_grad;
  const auto arrays = formats::read_npz(std::filesystem::path(path).replace_extension(".npz"));
  const auto file_input = array(arrays, "input"), expected = array(arrays, "output");
  LoadOptions options;
  options.image_size = {file_input.size(2), file_input.size(3)};
  const auto model = load(path, options);
  if (model.graph.signature.tail) throw Error(ErrorCode::unsupported_model, model.warnings.back());
  const auto input = from_file_input(model.graph, file_input);
  const auto output = as_file_output(model.graph, execute(model.graph, model.parameters, input));
  if (kOtherwise.count(path.stem()) > 0) {
    EXPECT_FALSE(model.warnings.empty());
    return;
  }
  ASSERT_EQ(output.sizes(), expected.sizes());
  const double error = (output - expected).abs().max().item<double>();
  EXPECT_LE(error, 1e-4 * expected.abs().max().item<double>());
}

void check(const std::filesystem::path& path) {
  const auto refused = kRefused.find(path.stem());
  try {
    expect_equal(path);
    EXPECT_EQ(refused, kRefused.end()) << "is listed as refused";
  } catch (const Error& error) {
    const std::string text = error.what();
    ASSERT_NE(refused, kRefused.end()) << text;
    EXPECT_NE(text.find(refused->second), std::string::npos) << text;
  }
}

void check_folder(const std::string& folder) {
  const auto cases = test::shared_path(folder);
  ZSQ_SKIP_WITHOUT(cases);
  for (const auto& entry : std::filesystem::directory_iterator(cases)) {
    const auto kind = entry.path().extension();
    if (kind != ".onnx" && kind != ".pt" && kind != ".pt2") continue;
    SCOPED_TRACE(entry.path().filename().string());
    check(entry.path());
  }
}

TEST(ForeignFiles, OperatorsInEveryForm) { check_folder("cases/import"); }
TEST(ForeignFiles, NetworksAsPeopleBringThem) { check_folder("cases/reports"); }

}  // namespace
}  // namespace zsq::models
