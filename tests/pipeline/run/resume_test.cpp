// SPDX-License-Identifier: Apache-2.0
// A run that is stopped and resumed gives the bytes of an unbroken one.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "formats/atomic_file.h"
#include "pipeline/quantize.h"
#include "pipeline/report/history.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_network.h"

namespace zsq::resume_test {
namespace {

namespace fs = std::filesystem;

class StopsEvaluation : public Observer {
 public:
  void on_message(LogLevel, const std::string& message) override {
    stop_ = stop_ || message.starts_with("evaluating");
  }
  bool stop_requested() override { return stop_; }

 private:
  bool stop_ = false;
};

class StopsAfter : public Observer {
 public:
  explicit StopsAfter(int iterations) : left_(iterations) {}
  bool stop_requested() override { return left_-- <= 0; }

 private:
  int left_;
};

// Every record of a run, sorted, without its time and the displayed agreement, a mean over the
// latest iterations of the process.
std::vector<std::string> history_of(const fs::path& folder) {
  std::vector<std::string> lines;
  for (auto record : pipeline::read_history(folder)) {
    record.time = 0;
    std::erase_if(record.metrics, [](const auto& metric) { return metric.first == "agreement"; });
    lines.push_back(pipeline::to_line(record));
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

ErrorCode code_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "no error was thrown";
  return ErrorCode::internal;
}

TEST(Resume, GivesTheBytesOfAnUnbrokenRun) {
  const test::TempFolder folder;
  const fs::path model = folder / "shapes.onnx";
  const test::TinyNetwork network = test::train_tiny_network(0);
  test::save_onnx(network.model, model);
  test::save_npz(network.test, folder / "shapes.npz");
  QuantizeOptions options;
  options.recipe = load_recipe(
      "deploy", {"finetune.iterations=24", "finetune.batch_size=8", "finetune.warmup=0.25",
                 "quantize.activations.calibration_images=16", "process.agreement_images=0",
                 "process.threads=1", "data.preset=cifar10"});
  quantize(model, options, folder / "unbroken");

  options.recipe.data.eval_data = folder / "shapes.npz";
  StopsAfter in_warm_up(3), in_fine_tuning(15);
  StopsEvaluation in_evaluation;
  for (Observer* observer :
       {static_cast<Observer*>(&in_warm_up), static_cast<Observer*>(&in_fine_tuning),
        static_cast<Observer*>(&in_evaluation)}) {
    const fs::path output = folder / "stopped";
    EXPECT_EQ(code_of([&] { quantize(model, options, output, observer); }), ErrorCode::stopped);
    QuantizeOptions resumed = options;
    resumed.resume = true;
    resumed.recipe.process.seed = 1;
    EXPECT_EQ(code_of([&] { quantize(model, resumed, output); }), ErrorCode::usage);
    resumed.recipe.process.seed = 0;
    resumed.recipe.process.checkpoint_every = 5;  // how often to save is no part of the result
    EXPECT_TRUE(quantize(model, resumed, output).student.has_value());
    EXPECT_TRUE(formats::read_file(output / "model.safetensors") ==
                formats::read_file(folder / "unbroken" / "model.safetensors"));
    EXPECT_EQ(history_of(output), history_of(folder / "unbroken"));
    EXPECT_FALSE(fs::exists(output / "checkpoint"));
  }
}

// Rounding gives ranges to all quantizers before any warm-up, and biases to layers that had none:
// what is stopped in warm-up has both.
TEST(Resume, GoesOnAfterRoundingWithLearnableScales) {
  const test::TempFolder folder;
  const fs::path model = folder / "shapes.onnx";
  test::save_onnx(test::train_tiny_network(0).model, model);
  QuantizeOptions options;
  options.recipe = load_recipe(
      "deploy", {"finetune.iterations=8", "finetune.batch_size=8", "finetune.warmup=0.5",
                 "finetune.learnable_scales=all", "quantize.weights.rounding=gptq",
                 "quantize.bias_correction=bn_statistics", "quantize.gptq.images=8",
                 "generate.images.source=dead_leaves", "quantize.activations.calibration_images=16",
                 "process.agreement_images=0", "process.threads=1", "data.preset=cifar10"});
  const auto layers = static_cast<int>(quantize(model, options, folder / "unbroken").layers.size());
  for (const int when : {1, 3, layers + 2, layers + 6}) {
    StopsAfter stop(when);
    const fs::path output = folder / std::to_string(when);
    EXPECT_EQ(code_of([&] { quantize(model, options, output, &stop); }), ErrorCode::stopped);
    QuantizeOptions resumed = options;
    resumed.resume = true;
    quantize(model, resumed, output);
    EXPECT_TRUE(formats::read_file(output / "model.safetensors") ==
                formats::read_file(folder / "unbroken" / "model.safetensors"))
        << when;
  }
}

TEST(Resume, WithNothingThereStartsAnew) {
  const test::TempFolder folder;
  const fs::path model = folder / "shapes.onnx";
  test::save_onnx(test::train_tiny_network(0).model, model);
  QuantizeOptions options;
  options.recipe = load_recipe("instant", {"process.agreement_images=0", "process.threads=1"});
  options.resume = true;
  EXPECT_FALSE(quantize(model, options, folder / "out").layers.empty());
}

// A reconstruction that was stopped goes on with the blocks that are finished.
TEST(Resume, GoesOnDuringAndAfterTheReconstruction) {
  const test::TempFolder folder;
  const fs::path model = folder / "shapes.onnx";
  test::save_onnx(test::train_tiny_network(0).model, model);
  QuantizeOptions options;
  options.recipe = load_recipe(
      "deploy", {"finetune.iterations=6", "finetune.batch_size=8", "finetune.warmup=0.5",
                 "process.agreement_images=4", "process.threads=1", "data.preset=cifar10",
                 "generate.images.steps=2", "generate.images.batch_size=32",
                 "reconstruct.iterations=4", "reconstruct.images=16", "reconstruct.batch_size=8"});
  const QuantizeReport whole = quantize(model, options, folder / "unbroken");
  ASSERT_FALSE(whole.blocks.empty());
  EXPECT_GT(history_of(folder / "unbroken").size(), 4 * whole.blocks.size());
  for (const BlockResult& block : whole.blocks) EXPECT_LE(block.after, block.before) << block.name;

  const int steps = 2 + 4 * static_cast<int>(whole.blocks.size());
  for (const int when : {3, 12, steps + 2, steps + 5}) {  // 12: within the third block
    StopsAfter stop(when);
    const fs::path output = folder / std::to_string(when);
    EXPECT_EQ(code_of([&] { quantize(model, options, output, &stop); }), ErrorCode::stopped);
    QuantizeOptions resumed = options;
    resumed.resume = true;
    const QuantizeReport report = quantize(model, resumed, output);
    ASSERT_EQ(report.blocks.size(), whole.blocks.size());
    for (std::size_t i = 0; i < whole.blocks.size(); ++i) {
      EXPECT_EQ(report.blocks[i].name, whole.blocks[i].name);
      EXPECT_EQ(report.blocks[i].before, whole.blocks[i].before);
      EXPECT_EQ(report.blocks[i].after, whole.blocks[i].after);
    }
    ASSERT_TRUE(report.kept.has_value());
    EXPECT_EQ(report.kept->kept.divergence, whole.kept->kept.divergence);
    EXPECT_EQ(report.kept->iteration, whole.kept->iteration);
    EXPECT_EQ(history_of(output), history_of(folder / "unbroken"));
    EXPECT_TRUE(formats::read_file(output / "model.safetensors") ==
                formats::read_file(folder / "unbroken" / "model.safetensors"));
  }
}

}  // namespace
}  // namespace zsq::resume_test
