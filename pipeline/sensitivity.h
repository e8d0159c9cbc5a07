// SPDX-License-Identifier: Apache-2.0
// Which layers bear few bits: what quantization of one layer alone does to a network's predictions.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/observer.h"
#include "recipes/recipe.h"

namespace zsq {

struct SensitivityRow {
  std::string name, op;
  std::int64_t weights = 0, macs = 0;
  std::map<std::int64_t, double> weight_sensitivity;  // by bits; KL to the teacher, nats per image
  std::map<std::int64_t, double> input_sensitivity;   // empty if the input stays float
};

struct SensitivityReport {
  std::string model, source_sha256;
  std::int64_t images = 0, weight_bits = 0, activation_bits = 0;  // of the recipe: the ranking's
  std::vector<SensitivityRow> layers;  // by falling sensitivity of weights and input at these bits
};

// On recipe.mixed.images images, for mixed.min_bits to mixed.max_bits and, beside them, the
// recipe's own. Errors: core/error.h.
SensitivityReport sensitivity(const std::filesystem::path& model, const Recipe& recipe,
                              Observer* observer = nullptr);

std::string to_json(const SensitivityReport& report);

}  // namespace zsq
