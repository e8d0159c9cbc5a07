// SPDX-License-Identifier: Apache-2.0
// A small trained network and runs of it under a budget.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/quantize.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tiny_network.h"

namespace zsq::test {

class MixedNetwork : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempFolder;
    setenv("ZSQ_CACHE", (*folder_ / "cache").c_str(), 1);
    const auto network = train_tiny_network(0);
    save_onnx(network.model, model());
    save_npz(network.test, *folder_ / "tiny.npz");
  }
  static void TearDownTestSuite() {
    unsetenv("ZSQ_CACHE");
    delete folder_;
  }
  static std::filesystem::path model() { return *folder_ / "tiny.onnx"; }

  static Recipe recipe(std::vector<std::string> overrides) {
    for (const char* common : {"data.preset=cifar10", "process.threads=1", "mixed.images=32",
                               "generate.images.steps=60", "generate.images.batch_size=32"})
      overrides.insert(overrides.begin(), common);
    Recipe recipe = load_recipe("instant", overrides);
    recipe.data.eval_data = *folder_ / "tiny.npz";
    return recipe;
  }
  static QuantizeReport run(const std::vector<std::string>& overrides, const std::string& output) {
    QuantizeOptions options;
    options.recipe = recipe(overrides);
    return quantize(model(), options, *folder_ / output);
  }
  static std::map<std::string, std::pair<std::int64_t, std::int64_t>> bits(
      const QuantizeReport& report) {
    std::map<std::string, std::pair<std::int64_t, std::int64_t>> bits;
    for (const LayerResult& layer : report.layers)
      bits[layer.name] = {layer.weight_bits, layer.activation_bits};
    return bits;
  }

  static inline TempFolder* folder_ = nullptr;
};

}  // namespace zsq::test
