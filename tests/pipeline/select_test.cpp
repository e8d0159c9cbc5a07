// SPDX-License-Identifier: Apache-2.0
// Runs ranked without real images, and what cannot be ranked.
#include "pipeline/select.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_softmax.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "formats/npy.h"
#include "formats/onnx.h"
#include "formats/safetensors.h"
#include "models/execute.h"
#include "models/load.h"
#include "pipeline/evaluate.h"
#include "pipeline/quantize.h"
#include "pipeline/report.h"
#include "quant/qdq_chain.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_network.h"

namespace zsq {
namespace {

namespace fs = std::filesystem;

class Select : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new test::TempFolder;
    setenv("ZSQ_CACHE", (*folder_ / "cache").c_str(), 1);
    const auto network = test::train_tiny_network(0);
    test::save_onnx(network.model, *folder_ / "tiny.onnx");
    for (const char* scheme : {"W2A2", "W8A8", "W4A4"}) {
      QuantizeOptions options;
      options.scheme = Scheme::parse(scheme);
      options.recipe = load_recipe("instant", {"data.preset=cifar10", "process.threads=1"});
      options.recipe.data.eval_data = *folder_ / "tiny.npz";
      test::save_npz(network.test, *folder_ / "tiny.npz");
      top1_[scheme] = quantize(*folder_ / "tiny.onnx", options, *folder_ / scheme).student->top1;
    }
  }
  static void TearDownTestSuite() {
    unsetenv("ZSQ_CACHE");
    delete folder_;
  }
  static SelectOptions options() {
    SelectOptions options;
    options.recipe = load_recipe("deploy", {"generate.images.steps=60", "process.threads=1"});
    options.images = 48;
    return options;
  }
  static std::vector<fs::path> folders() {
    return {*folder_ / "W2A2", *folder_ / "W8A8", *folder_ / "W4A4"};
  }

  static test::TempFolder* folder_;
  static std::map<std::string, double> top1_;
};
test::TempFolder* Select::folder_ = nullptr;
std::map<std::string, double> Select::top1_;

TEST_F(Select, RanksAsRealAccuracyDoes) {
  const SelectReport report = select(folders(), options());
  EXPECT_EQ(report.images, 48);
  ASSERT_EQ(report.rows.size(), 3u);
  EXPECT_EQ(report.rows[0].scheme, "W8A8");
  EXPECT_EQ(report.rows[1].scheme, "W4A4");
  EXPECT_EQ(report.rows[2].scheme, "W2A2");
  EXPECT_LT(report.rows[0].divergence, report.rows[1].divergence);
  EXPECT_GT(report.rows[0].agreement, report.rows[2].agreement);
  EXPECT_GE(top1_["W8A8"], top1_["W4A4"]);
  EXPECT_GT(top1_["W4A4"], top1_["W2A2"]);
}

TEST_F(Select, IsTheDivergenceOfTheExportedFile) {
  const auto file = formats::read_safetensors([] {
    select({*folder_ / "W4A4"}, options());
    for (const auto& entry : fs::directory_iterator(*folder_ / "cache"))
      if (entry.path().filename().string().starts_with("selection_")) return entry.path();
    return fs::path();
  }());
  const at::Tensor images = models::to_tensor(*formats::find(file.tensors, "images"));
  const auto answer = [&](const fs::path& path) {
    models::LoadOptions exported;
    exported.make_quantize_chain = quant::quantize_chain_factory();
    const models::Model model = models::load(path, exported);
    return at::log_softmax(models::execute(model.graph, model.parameters, images).to(at::kDouble),
                           1);
  };
  const auto p = answer(*folder_ / "tiny.onnx"), s = answer(*folder_ / "W4A4" / "model.onnx");
  const double expected = (p.exp() * (p - s)).sum(1).mean().item<double>();
  EXPECT_NEAR(select({*folder_ / "W4A4"}, options()).rows[0].divergence, expected, 1e-4 * expected);
}

TEST_F(Select, ABankMayGiveTheImages) {
  select(folders(), options());
  fs::path kept;
  for (const auto& entry : fs::directory_iterator(*folder_ / "cache")) kept = entry.path();
  auto given = options();
  given.bank = kept;
  given.images = 10;
  EXPECT_EQ(select(folders(), given).images, 10);
}

// As zsq eval --against measures the same images, and zsq report shows of each run.
TEST_F(Select, ShowsEachOfSeveralOutputs) {
  auto file = formats::onnx::read(*folder_ / "tiny.onnx");
  formats::onnx::ValueInfo channels;
  channels.name = file.graph.nodes.back().inputs.at(0);
  file.graph.outputs.push_back(channels);
  const fs::path network = *folder_ / "two.onnx", run = *folder_ / "of_two";
  formats::onnx::write(network, file);
  QuantizeOptions instant;
  instant.scheme = Scheme::parse("W4A4");
  instant.recipe = load_recipe("instant", {"data.preset=cifar10", "process.threads=1"});
  const auto quantized = quantize(network, instant, run);
  fs::remove_all(*folder_ / "cache");
  const SelectReport report = select({run}, options());
  ASSERT_EQ(report.rows.at(0).outputs.size(), 2U);
  EXPECT_EQ(report.rows[0].outputs[1].name, channels.name);

  const auto bank = formats::read_safetensors(*fs::directory_iterator(*folder_ / "cache"));
  formats::write_npz(*folder_ / "bank.npz", {{"images", *formats::find(bank.tensors, "images")}});
  EvaluateOptions same;
  same.data.eval_data = *folder_ / "bank.npz";
  same.against = network;
  const auto compared = evaluate(run, same).difference.outputs_apart;
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_GT(compared.at(i).divergence, 0);
    EXPECT_NEAR(report.rows[0].outputs[i].divergence, compared[i].divergence,
                1e-4 * compared[i].divergence);
    EXPECT_NEAR(report.rows[0].outputs[i].agreement, compared[i].agreement, 1e-6);
  }
  EXPECT_NE(to_json(report).find("\"outputs\":[{\"name\":"), std::string::npos);

  const RunsReport shown = report_runs({run, *folder_ / "W4A4"});
  const auto json = nlohmann::json::parse(shown.json);
  const auto& kinds = json.at("runs").at(0).at("synthetic");
  ASSERT_EQ(kinds.size(), quantized.synthetic.size());
  for (std::size_t i = 0; i < kinds.size(); ++i)
    EXPECT_EQ(kinds[i].at("outputs").at(1).at("divergence"),
              quantized.synthetic[i].outputs.at(1).divergence);
  char divergence[32];
  std::snprintf(divergence, sizeof divergence, "%.4f (KL)",
                quantized.synthetic[0].outputs[1].divergence);
  for (const std::string& text : {shown.text, shown.html}) {
    EXPECT_NE(text.find(channels.name), std::string::npos);
    EXPECT_NE(text.find(divergence), std::string::npos) << divergence;
  }
}

void expect_error(const std::function<void()>& action, ErrorCode code, const std::string& part) {
  try {
    action();
    ADD_FAILURE() << "no error was thrown; expected one of " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST_F(Select, WhatCannotBeRankedIsNamed) {
  expect_error([&] { select({}, options()); }, ErrorCode::usage, "no output folder");
  expect_error([&] { select({*folder_ / "none"}, options()); }, ErrorCode::bad_input, "none");
  fs::create_directory(*folder_ / "odd");
  std::ofstream(*folder_ / "odd" / "report.json") << "[1, 2]";
  expect_error([&] { select({*folder_ / "odd"}, options()); }, ErrorCode::bad_input,
               "is not the report of a finished");
  const fs::path other = *folder_ / "other.onnx";
  test::save_onnx(test::train_tiny_network(1).model, other);
  QuantizeOptions instant;
  instant.recipe = load_recipe("instant", {"data.preset=cifar10", "process.threads=1"});
  quantize(other, instant, *folder_ / "of_other");
  expect_error(
      [&] {
        select({*folder_ / "W4A4", *folder_ / "of_other"}, options());
      },
      ErrorCode::usage, "different models");
  auto wrong = options();
  wrong.model = other;
  expect_error([&] { select({*folder_ / "W4A4"}, wrong); }, ErrorCode::usage, "--model");
}

}  // namespace
}  // namespace zsq
