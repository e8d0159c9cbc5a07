// SPDX-License-Identifier: Apache-2.0
#include "recipes/effort.h"

#include <algorithm>

namespace zsq {
namespace {

constexpr std::int64_t kBitsWithoutLoss = 8;  // instant is within a standard error of float
// More multiplications would gain little, and dead leaves alone would lose what rounding gains.
constexpr std::int64_t kBitsWithoutCopies = 6;
constexpr std::int64_t kBitsOfTables = 4;  // of the table `normal`, which has 16 levels

std::string training_free(Effort effort, std::int64_t weights, std::int64_t activations) {
  if (effort == Effort::seconds || std::min(weights, activations) >= kBitsWithoutLoss)
    return "instant";
  return weights == kBitsOfTables ? "instant+gptq+tables+channel_correction"
                                  : "instant+gptq+channel_correction";
}

}  // namespace

Recipe load_effort(Effort effort, const std::vector<std::string>& overrides) {
  Recipe asked;
  for (const std::string& override : overrides) apply_override(asked, override);
  const std::int64_t weights = asked.quantize.weights.num_bits;
  const std::int64_t activations = asked.quantize.activations.num_bits;
  const std::string name =
      effort == Effort::half_hour ? "auto" : training_free(effort, weights, activations);
  std::vector<std::string> settings{"quantize.weights.num_bits=" + std::to_string(weights),
                                    "quantize.activations.num_bits=" + std::to_string(activations)};
  if (effort == Effort::half_hour) settings.emplace_back("process.time_budget=30min");
  if (name.ends_with("+channel_correction")) {
    if (std::min(weights, activations) >= kBitsWithoutCopies)
      settings.emplace_back("quantize.split_expansion=0");
    else if (effort == Effort::minutes)
      settings.emplace_back("quantize.split_expansion=20");
    else
      settings.emplace_back("generate.images.source=dead_leaves");  // which take no time
  }
  settings.insert(settings.end(), overrides.begin(), overrides.end());
  return load_recipe(name, settings);
}

}  // namespace zsq
