// SPDX-License-Identifier: Apache-2.0
// Images of sides that suit no power of two.
#include <gtest/gtest.h>

#include "pipeline/generate.h"
#include "pipeline/quantize.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_network.h"

namespace zsq {
namespace {

namespace fs = std::filesystem;

TEST(ImageSizes, AnySideTrainsAndIsExported) {
  const test::TempFolder folder;
  models::Model network = test::train_tiny_network(0).model;  // pools globally: takes any size
  for (const auto& [height, width] : {std::pair(33, 47), {18, 18}, {16, 30}}) {
    network.graph.input_shape = {3, height, width};
    const std::string name = std::to_string(height) + "x" + std::to_string(width);
    const fs::path model = folder / (name + ".onnx");
    test::save_onnx(network, model);
    QuantizeOptions options;
    options.recipe = load_recipe(
        "deploy", {"finetune.iterations=6", "finetune.batch_size=8", "finetune.warmup=0.5",
                   "finetune.validation_checks=0", "quantize.activations.calibration_images=16",
                   "process.agreement_images=16", "process.threads=1"});
    const QuantizeReport trained = quantize(model, options, folder / name);
    EXPECT_EQ(trained.iterations, 6) << name;
    ASSERT_TRUE(trained.agreement.has_value());  // measured on images of the generator
    EXPECT_GT(*trained.agreement, 0.2);
    EXPECT_TRUE(fs::exists(folder / name / "model.onnx"));

    GenerateOptions generation;
    generation.recipe = load_recipe(
        "deploy",
        {"generate.images.steps=2", "generate.images.swing_convolution=true", "process.threads=1"});
    generation.images = 4;
    generation.form = "safetensors";
    generate(model, generation, folder / (name + "bank"));
    EXPECT_TRUE(fs::exists(folder / (name + "bank") / "bank.safetensors"));

    for (const char* recipe : {"instant", "instant+gptq"}) {
      options.recipe = load_recipe(recipe, {"process.threads=1", "quantize.gptq.images=8"});
      quantize(model, options, folder / (name + recipe));
      EXPECT_TRUE(fs::exists(folder / (name + recipe) / "model.onnx"));
    }
  }
}

}  // namespace
}  // namespace zsq
