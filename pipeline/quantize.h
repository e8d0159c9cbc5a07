// SPDX-License-Identifier: Apache-2.0
// The main job: a trained CNN file in, a quantized model and its report out. No data needed.
//   zsq::QuantizeOptions options;
//   options.scheme = zsq::Scheme::parse("W4A4");
//   zsq::QuantizeReport report = zsq::quantize("resnet18.onnx", options, "out");
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "core/error.h"
#include "core/observer.h"
#include "pipeline/results.h"
#include "pipeline/scheme.h"
#include "recipes/recipe.h"

namespace zsq {

struct QuantizeOptions {
  Recipe recipe = load_recipe(
      "auto");  // fits network, device and time; W4A4 inside, 8-bit first and last layer
  std::optional<Scheme> scheme;  // overrides the bits of the recipe
  bool resume = false;           // go on from the checkpoint in the output folder, if there is one
  double min_top1 = 0;           // per cent; 0: no gate. Needs recipe.data.eval_data
  double min_agreement = 0;      // per cent of the held-out synthetic images; 0: no gate
};

// Writes model.onnx, model.safetensors, report.json, report.html and resolved.yaml into `output`,
// each whole or not at all, and, while it runs, history.jsonl, samples/ and TensorBoard's
// events.out.tfevents.*. Errors: core/error.h; stopped (by the observer) leaves
// output/checkpoint for `resume`; accuracy_gate comes after everything is saved. Evaluation never
// changes the result.
QuantizeReport quantize(const std::filesystem::path& model, const QuantizeOptions& options,
                        const std::filesystem::path& output, Observer* observer = nullptr);

}  // namespace zsq
