// SPDX-License-Identifier: Apache-2.0
// A run that is stopped and resumed gives the bytes of an unbroken one.
#include <gtest/gtest.h>

#include <functional>

#include "formats/atomic_file.h"
#include "pipeline/quantize.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_network.h"

namespace zsq {
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
    EXPECT_FALSE(fs::exists(output / "checkpoint"));
  }
}

}  // namespace
}  // namespace zsq
