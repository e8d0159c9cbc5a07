// SPDX-License-Identifier: Apache-2.0
#include "pipeline/compare.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/one_hot.h>
#include <gtest/gtest.h>

#include <cmath>

#include "formats/npy.h"
#include "models/load.h"
#include "pipeline/evaluate.h"
#include "pipeline/quantize.h"
#include "pipeline/report/layer_errors.h"
#include "quant/calibration/ranges.h"
#include "tests/support/error_message.h"
#include "tests/support/quantized.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_network.h"

namespace zsq::compare_test {
namespace {

struct Workplace {
  Workplace() : network(test::train_tiny_network(0)) {
    test::save_onnx(network.model, folder / "shapes.onnx");
    test::save_npz(network.test, folder / "shapes.npz");
  }
  test::TempFolder folder;
  test::TinyNetwork network;
};
Workplace& workplace() {
  static Workplace place;
  return place;
}

CompareOptions compare_options() {
  CompareOptions options;
  options.recipe = load_recipe("auto", {"data.preset=cifar10", "process.threads=1"});
  options.images = 20;
  return options;
}

TEST(Compare, AModelWithItselfDiffersNowhere) {
  const auto model = workplace().folder / "shapes.onnx";
  const auto result = compare_models(model, model, compare_options());
  EXPECT_EQ(result.images, 20);
  EXPECT_EQ(result.agreement, 1);
  EXPECT_NEAR(result.divergence, 0, 1e-9);
  ASSERT_FALSE(result.layers.empty());
  for (const auto& layer : result.layers) EXPECT_TRUE(std::isinf(layer.sqnr)) << layer.name;
}

// Every layer of an exported file finds its counterpart, and fewer bits differ more.
TEST(Compare, AnExportedFileWithItsTeacher) {
  const auto model = workplace().folder / "shapes.onnx";
  double before = 1e9;
  for (const char* scheme : {"W8A8", "W4A4"}) {
    QuantizeOptions options;
    options.scheme = Scheme::parse(scheme);
    options.recipe = load_recipe("instant", {"data.preset=cifar10", "process.threads=1"});
    const auto output = workplace().folder / scheme;
    const auto report = quantize(model, options, output);
    auto how = compare_options();
    how.recipe.data.eval_data = workplace().folder / "shapes.npz";
    const auto result = compare_models(model, output, how);
    EXPECT_EQ(result.images_kind, "real");
    EXPECT_EQ(result.layers.size(), report.layers.size());
    EXPECT_TRUE(result.only_in_a.empty());
    EXPECT_TRUE(result.only_in_b.empty());
    for (std::size_t i = 1; i < result.layers.size(); ++i)
      EXPECT_LE(result.layers[i - 1].sqnr, result.layers[i].sqnr);
    EXPECT_LT(result.layers.front().sqnr, before - 6);  // dB: four bits are worth 24
    before = result.layers.front().sqnr;
  }
}

// The same figures as those of compare, on images whose labels nobody knows, and top-1 where they
// are known.
TEST(Evaluate, AgainstTheFloatModel) {
  const auto model = workplace().folder / "shapes.onnx";
  QuantizeOptions options;
  options.scheme = Scheme::parse("W4A4");
  options.recipe = load_recipe("instant", {"data.preset=cifar10", "process.threads=1"});
  const auto output = workplace().folder / "against";
  quantize(model, options, output);
  const auto unlabelled = workplace().folder / "unlabelled.npz";
  formats::write_npz(unlabelled, {{"images", models::to_array(workplace().network.test.images)}});
  auto how = compare_options();
  how.images = 1000;
  how.recipe.data.eval_data = unlabelled;
  const auto compared = compare_models(model, output, how);

  EvaluateOptions evaluation;
  evaluation.data = how.recipe.data;
  evaluation.process = how.recipe.process;
  EXPECT_NE(test::error_message(ErrorCode::usage, [&] { evaluate(output, evaluation); })
                .find("--against"),
            std::string::npos);
  evaluation.against = model;
  const auto alone = evaluate(output, evaluation);
  EXPECT_EQ(alone.measured, "nothing");
  EXPECT_EQ(alone.images, 1000);
  EXPECT_NEAR(alone.difference.agreement, compared.agreement, 1e-9);
  EXPECT_NEAR(alone.difference.divergence, compared.divergence, 1e-6);
  EXPECT_LT(alone.difference.agreement, 1);
  evaluation.data.eval_data = workplace().folder / "shapes.npz";
  const auto labelled = evaluate(output, evaluation);
  EXPECT_EQ(labelled.measured, "classes");
  EXPECT_NEAR(labelled.difference.agreement, compared.agreement, 1e-9);
  evaluation.against.clear();
  EXPECT_EQ(labelled.top1, evaluate(output, evaluation).top1);
}

// Labels of another data set, one per image or sets of them, are no reason not to compare outputs.
TEST(Evaluate, LeavesOutLabelsThatTheNetworkDoesNotHaveBesideAnother) {
  struct Listener : Observer {
    void on_message(LogLevel level, const std::string& text) override {
      if (level == LogLevel::warning) warnings.push_back(text);
    }
    std::vector<std::string> warnings;
  };
  const auto model = workplace().folder / "shapes.onnx", data = workplace().folder / "other.npz";
  const auto images = workplace().network.test.images.slice(0, 0, 100);
  const auto labels = workplace().network.test.labels.slice(0, 0, 100);
  EvaluateOptions options;
  options.data = compare_options().recipe.data;
  options.data.eval_data = data;
  options.data.eval_batch_size = 40;
  auto late = labels.clone();
  late[99] = 140;  // of the last batch
  const std::vector<std::pair<at::Tensor, std::pair<ErrorCode, std::string>>> others{
      {labels + 132, {ErrorCode::bad_input, "the network has 8 classes"}},
      {late, {ErrorCode::bad_input, "label 140"}},
      {at::one_hot(labels, 8), {ErrorCode::usage, "the network gives 8 logits"}}};
  for (const auto& [other, refusal] : others) {
    formats::write_npz(data,
                       {{"images", models::to_array(images)}, {"labels", models::to_array(other)}});
    options.against.clear();
    const auto alone = test::error_message(refusal.first, [&] { evaluate(model, options); });
    EXPECT_NE(alone.find(refusal.second), std::string::npos) << alone;
    options.against = model;
    Listener listener;
    const auto report = evaluate(model, options, &listener);
    EXPECT_EQ(report.measured, "nothing");
    EXPECT_EQ(report.images, 100);
    EXPECT_EQ(report.difference.agreement, 1);
    ASSERT_EQ(listener.warnings.size(), 1U);
    EXPECT_NE(listener.warnings[0].find(refusal.second), std::string::npos);
  }
}

// The run's layers compute in other coordinates than those of the file that it was made of.
TEST(Compare, ARunThatScaledAndRotatedChannelsWithItsTeacher) {
  const auto model = workplace().folder / "mobile.onnx";
  test::save_onnx(test::train_tiny_mobile_network(0).model, model);
  QuantizeOptions options;
  options.scheme = Scheme::parse("W8A7");
  options.recipe = load_recipe("instant", {"data.preset=cifar10", "process.threads=1",
                                           "quantize.rotation=8", "process.agreement_images=0"});
  ASSERT_EQ(options.recipe.quantize.equalize, Equalization::inverted_residuals);
  const auto output = workplace().folder / "rotated";
  quantize(model, options, output);
  for (const auto& [a, b] : {std::pair{model, output}, {output, model}}) {
    const auto result = compare_models(a, b, compare_options());
    // dB; in unlike coordinates noise is as strong as signal.
    for (const auto& layer : result.layers) EXPECT_GT(layer.sqnr, 10) << layer.name;
  }
}

// The ratios by their definition, for a layer worked out by hand: float input of the layer from the
// teacher, quantized as the student does it.
TEST(LayerErrors, AreSignalToNoiseRatiosOfOneLayerAlone) {
  const auto& teacher = workplace().network.model;  // trained here, so before gradients are off
  const at::NoGradGuard no_grad;
  QuantOptions options = load_recipe("instant").quantize;
  options.weights.num_bits = options.activations.num_bits = 4;
  auto student = test::quantized(teacher, options);
  quant::calibrate(student, {});
  const auto images = workplace().network.test.images.slice(0, 0, 4);
  const auto errors = pipeline::layer_errors(teacher, student, images);
  const auto sites = quant::weight_sites(student);
  ASSERT_EQ(errors.size(), sites.size());
  const auto& first = sites.front();  // reads the image
  const auto decibels = [](const at::Tensor& exact, const at::Tensor& other) {
    return 10 * std::log10((exact.square().sum() / (other - exact).square().sum()).item<double>());
  };
  const auto weight = teacher.parameters.at(first.parameter).to(at::kDouble);
  const auto quantized =
      first.op->forward({student.parameters.at(first.parameter)}, student.parameters)
          .to(at::kDouble);
  const auto& error = errors.at(student.graph[first.layer].name);
  EXPECT_NEAR(error.weight_sqnr, decibels(weight, quantized), 1e-3);
  EXPECT_GT(error.output_sqnr, 10);
  EXPECT_LT(error.output_sqnr, 60);
}

}  // namespace
}  // namespace zsq::compare_test
