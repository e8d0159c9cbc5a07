// SPDX-License-Identifier: Apache-2.0
// A run that is stopped and resumed gives the bytes of an unbroken one.
#include <gtest/gtest.h>
#include <unistd.h>

#include "formats/atomic_file.h"
#include "pipeline/quantize.h"
#include "tests/support/tiny_network.h"

namespace zsq {
namespace {

namespace fs = std::filesystem;

class StopsAfter : public Observer {
 public:
  explicit StopsAfter(int iterations) : left_(iterations) {}
  bool stop_requested() override { return left_-- <= 0; }

 private:
  int left_;
};

TEST(Resume, GivesTheBytesOfAnUnbrokenRun) {
  const fs::path folder = fs::temp_directory_path() / ("zsq_resume_" + std::to_string(getpid()));
  fs::create_directories(folder);
  const fs::path model = folder / "shapes.onnx";
  test::save_onnx(test::train_tiny_network(0).model, model);
  QuantizeOptions options;
  options.recipe =
      load_recipe("deploy", {"finetune.iterations=24", "finetune.batch_size=8",
                             "finetune.warmup=0.25", "quantize.activations.calibration_images=16",
                             "process.agreement_images=0", "process.threads=1"});
  quantize(model, options, folder / "unbroken");

  for (const int stop_at : {3, 15}) {  // in the warm-up, in the fine-tuning
    const fs::path output = folder / ("stopped" + std::to_string(stop_at));
    StopsAfter observer(stop_at);
    try {
      quantize(model, options, output, &observer);
      FAIL() << "the run was not stopped";
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::stopped) << error.what();
    }
    QuantizeOptions resumed = options;
    resumed.resume = true;
    resumed.recipe.process.seed = 1;
    EXPECT_THROW(quantize(model, resumed, output), Error) << "another run's checkpoint was taken";
    resumed.recipe.process.seed = 0;
    resumed.recipe.process.checkpoint_every = 5;  // how often to save is no part of the result
    quantize(model, resumed, output);
    EXPECT_TRUE(formats::read_file(output / "model.safetensors") ==
                formats::read_file(folder / "unbroken" / "model.safetensors"));
    EXPECT_FALSE(fs::exists(output / "checkpoint"));
  }
  fs::remove_all(folder);
}

}  // namespace
}  // namespace zsq
