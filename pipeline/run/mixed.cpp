// SPDX-License-Identifier: Apache-2.0
#include "pipeline/run/mixed.h"

#include "core/error.h"
#include "core/seed.h"
#include "generator/augment.h"
#include "pipeline/images/distilled.h"
#include "pipeline/images/image_job.h"
#include "pipeline/report/student_layers.h"
#include "pipeline/run/bit_budget.h"
#include "quant/bit_allocation/allocate_bits.h"
#include "quant/rounding/registry.h"

namespace zsq::pipeline {
namespace {

using quant::LayerSensitivity;

// Bits of one layer and what they cost.
struct BitCandidate {
  std::int64_t weight_bits, input_bits;
  quant::BitChoice choice;
};

// What a layer may be; `now`: what it is without a budget.
std::vector<BitCandidate> candidates_of(const LayerSensitivity& layer, const StudentLayer& now,
                                        const BitBudget& budget) {
  std::vector<BitCandidate> candidates;
  const auto add = [&](std::int64_t weight_bits, std::int64_t input_bits, double sensitivity) {
    candidates.push_back(
        {weight_bits, input_bits, {budget.cost(layer, weight_bits, input_bits), sensitivity}});
  };
  for (const auto& [bits, sensitivity] : layer.weight_sensitivity) {
    if (!budget.chooses_inputs() || layer.input_sensitivity.empty()) {
      add(bits, now.activation_bits, sensitivity);
      continue;
    }
    for (const auto& [input_bits, input_sensitivity] : layer.input_sensitivity)
      add(bits, input_bits, sensitivity + input_sensitivity);
  }
  return candidates;
}

}  // namespace

std::vector<LayerSensitivity> measure_sensitivity(const models::Model& teacher,
                                                  const models::Model& source,
                                                  const std::string& sha256, const Recipe& recipe,
                                                  bool inputs, Observer& observer) {
  // Of plain images the teacher is all but certain, which hides what single layers do.
  const at::Tensor images = generator::cutmix(
      distilled_images(source, sha256, recipe, {"sensitivity", recipe.mixed.images}, observer),
      stream_seed(0, "sensitivity", 0));
  quant::SensitivityJob job{
      teacher, recipe.quantize, images, recipe.mixed.min_bits, recipe.mixed.max_bits, inputs};
  job.seed = static_cast<std::uint64_t>(recipe.process.seed);
  if (quant::rounding_method(recipe.quantize.weights.rounding).needs_images())  // not of the above
    job.rounding_images =
        procedural_images(source, recipe, 0, recipe.quantize.gptq.images, job.seed);
  return quant::measure_sensitivity(job, observer);
}

MixedResult choose_bits(const models::Model& teacher, const models::Model& source,
                        const std::string& sha256, Recipe& recipe, Observer& observer) {
  // These are what is to be found.
  recipe.quantize.weights.layer_bits.clear();
  recipe.quantize.activations.layer_bits.clear();
  const auto budget = bit_budget(teacher, recipe);
  const auto layers =
      measure_sensitivity(teacher, source, sha256, recipe, budget->chooses_inputs(), observer);
  const quant::Student uniform = student_of_bits(teacher, recipe, 0, 0),
                       lowest = student_of_bits(teacher, recipe, recipe.mixed.min_bits, 0);
  const auto now = student_layers(uniform), least = student_layers(lowest);
  std::int64_t fixed = budget->cost(lowest);  // what no choice changes
  std::vector<std::size_t> open;              // layers that may change
  std::vector<std::vector<BitCandidate>> candidates;
  std::vector<std::vector<quant::BitChoice>> groups;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    if (layers[l].end && recipe.quantize.first_last_bits > 0) continue;
    open.push_back(l);
    fixed -= budget->cost(layers[l], least[l].weight_bits, least[l].activation_bits);
    candidates.push_back(candidates_of(layers[l], now[l], *budget));
    groups.emplace_back();
    for (const BitCandidate& candidate : candidates.back())
      groups.back().push_back(candidate.choice);
  }
  const auto found = quant::allocate_bits(groups, budget->limit() - fixed);
  if (!found) throw Error(ErrorCode::internal, "no choice of bits meets a budget that was reached");

  MixedResult result = budget->result(fixed + found->cost);
  result.predicted_divergence = found->sensitivity;
  for (const LayerSensitivity& layer : layers)
    result.sensitivity.push_back({layer.layer, layer.weight_sensitivity, layer.input_sensitivity});
  observer.on_message(LogLevel::info, "bits chosen: " + budget->words(fixed + found->cost) +
                                          " of " + budget->words(budget->limit()));
  for (std::size_t i = 0; i < open.size(); ++i) {
    const LayerSensitivity& layer = layers[open[i]];
    const BitCandidate& chosen = candidates[i][found->chosen[i]];
    recipe.quantize.weights.layer_bits.push_back({layer.layer, chosen.weight_bits});
    if (budget->chooses_inputs() && !layer.input_sensitivity.empty())
      recipe.quantize.activations.layer_bits.push_back({layer.layer, chosen.input_bits});
  }
  recipe.mixed.target_size = recipe.mixed.target_bops = recipe.mixed.target_cost = {};
  recipe.mixed.cost_table.clear();
  return result;
}

}  // namespace zsq::pipeline
