// SPDX-License-Identifier: Apache-2.0
// Two models on the same images, layer by layer: a float network and what was made of it, or two
// quantized ones.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/observer.h"
#include "pipeline/output_agreement.h"
#include "pipeline/results.h"
#include "recipes/recipe.h"

namespace zsq {

struct CompareOptions {
  Recipe recipe = load_recipe("auto");  // model, data and process
  std::int64_t images = 64;
  // Real images by recipe.data.eval_data; synthetic ones if that is empty.
};

// The output of a layer, with the BatchNorm that follows it.
struct LayerDifference {
  std::string name;
  double sqnr = 0;     // dB: 10 log10(sum a^2 / sum (b - a)^2)
  double mean = 0;     // mean of b - a, in deviations of a
  double largest = 0;  // largest |b - a|, in deviations of a
};

struct ModelComparison : OutputAgreement {
  std::string a, b, images_kind;  // "real", "dead_leaves" or "scenes"
  std::int64_t images = 0;
  std::int64_t outputs = 0;
  std::string output_kind = "logits";             // or "scores", "values", "map", "several"
  std::vector<LayerDifference> layers;            // lowest SQNR first
  std::vector<std::string> only_in_a, only_in_b;  // layers that cannot be compared
};

// `a`, `b`: model files or output folders of `zsq quantize`. Error(usage) if they take images of
// different shapes, give different numbers of outputs or share no layer name.
ModelComparison compare_models(const std::filesystem::path& a, const std::filesystem::path& b,
                               const CompareOptions& options, Observer* observer = nullptr);

std::string to_json(const ModelComparison& comparison);

}  // namespace zsq
