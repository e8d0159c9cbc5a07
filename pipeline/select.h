// SPDX-License-Identifier: Apache-2.0
// Which of several quantized models is best, told without real images: how near each one's answers
// are to the original network's, on held-out synthetic images.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/observer.h"
#include "pipeline/results.h"
#include "recipes/recipe.h"

namespace zsq {

struct SelectOptions {
  // generate.images, model and process
  Recipe recipe = load_recipe("deploy+optimised_leaves");
  std::filesystem::path model;  // the original; empty: where the first report says
  std::filesystem::path bank;   // images; empty: made once from the original, and kept
  std::int64_t images = 64;
};

struct SelectRow {
  std::string folder, scheme, recipe;
  std::int64_t seed = 0, quantized_bytes = 0;
  // Of logits: KL(original || quantized), temperature 1, nats per image, and the share of the
  // images that both give one class; of other outputs as losses/divergence.h says.
  double divergence = 0, agreement = 0;
  std::vector<OutputResult> outputs = {};  // each of several, or of one with places
};

struct SelectReport {
  std::string model, source_sha256;
  std::int64_t images = 0;
  std::string output_kind = "logits";  // or "scores", "values"
  std::vector<SelectRow> rows;         // nearest first
};

// `folders`: output folders of `zsq quantize`, all of one model. What is measured is the exported
// file. Error(usage) if they are of different models; Error(bad_input) for a folder that holds
// no finished run.
SelectReport select(const std::vector<std::filesystem::path>& folders, const SelectOptions& options,
                    Observer* observer = nullptr);

std::string to_json(const SelectReport& report);

}  // namespace zsq
