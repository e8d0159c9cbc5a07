// SPDX-License-Identifier: Apache-2.0
#include "pipeline/mixed.h"

#include <cstdio>
#include <map>
#include <numeric>

#include "exporters/export.h"
#include "models/load.h"
#include "pipeline/images/distilled.h"
#include "pipeline/images/image_job.h"
#include "pipeline/report/student_layers.h"
#include "quant/bit_allocation/allocate_bits.h"
#include "quant/rounding/registry.h"

namespace zsq::pipeline {
namespace {

using quant::LayerSensitivity;

// Bits of one layer and what they cost.
struct Candidate {
  std::int64_t weight_bits, input_bits;
  quant::BitChoice choice;
};

// The student with `bits` in every layer that may change (0: as the recipe has them). Only bits
// matter here, so the quickest rules serve.
quant::Student student_of(const models::Model& teacher, const Recipe& recipe, std::int64_t bits) {
  QuantOptions options = recipe.quantize;
  options.weights.range = WeightRange::min_max;
  options.weights.rounding = WeightRounding::nearest;
  options.bias_correction = BiasCorrection::none;
  if (bits > 0) options.weights.num_bits = options.activations.num_bits = bits;
  return quant::insert_quantizers(teacher, options);
}

std::int64_t bit_operations(std::int64_t macs, std::int64_t weight_bits, std::int64_t input_bits) {
  return macs * weight_bits * (input_bits ? input_bits : 32);
}

class Target {
 public:
  Target(const models::Model& teacher, const Recipe& recipe)
      : teacher_(teacher), recipe_(recipe), macs_(models::multiply_accumulates(teacher)) {
    const Budget& given = size() ? recipe.mixed.target_size : recipe.mixed.target_bops;
    std::int64_t whole = 64 * std::accumulate(macs_.begin(), macs_.end(), std::int64_t{0});
    if (size()) {
      whole = exporters::parameter_bytes(teacher, student_of(teacher, recipe, 0)).fp32_bytes;
      count_code_bytes();
    }
    budget = static_cast<std::int64_t>(
        given.percent ? given.amount / 100 * static_cast<double>(whole) : given.amount);
    const std::int64_t least = cost(student_of(teacher, recipe, recipe.mixed.min_bits));
    if (budget >= least) return;
    char share[32];
    std::snprintf(share, sizeof share, "%.2f%%",
                  100 * static_cast<double>(least) / static_cast<double>(whole));
    throw Error(ErrorCode::usage,
                std::string(size() ? "mixed.target_size" : "mixed.target_bops") + ": " +
                    words(budget) + " cannot be reached; the smallest is " + words(least) + " (" +
                    share +
                    "), with mixed.min_bits in every layer that may change. "
                    "quantize.first_last_bits=0 lets the first and last layer change too");
  }

  std::int64_t budget = 0;

  bool size() const { return recipe_.mixed.target_size.amount > 0; }

  std::int64_t cost(const quant::Student& student) const {
    if (size()) return exporters::parameter_bytes(teacher_, student).quantized_bytes;
    std::int64_t sum = 0;
    for (const StudentLayer& layer : student_layers(student))
      sum += bit_operations(macs_[static_cast<std::size_t>(teacher_.graph.id_of(layer.name))],
                            layer.weight_bits, layer.activation_bits);
    return sum;
  }

  // What of this depends on one layer.
  std::int64_t cost(const LayerSensitivity& layer, std::int64_t weight_bits,
                    std::int64_t input_bits) const {
    return size() ? code_bytes_.at({layer.layer, weight_bits})
                  : bit_operations(layer.macs, weight_bits, input_bits);
  }

  std::string words(std::int64_t amount) const {
    char text[64];
    if (size())
      std::snprintf(text, sizeof text, "%.3fkB", static_cast<double>(amount) / 1e3);
    else
      std::snprintf(text, sizeof text, "%.6gM bit operations", static_cast<double>(amount) / 1e6);
    return text;
  }

 private:
  // Of every layer, at all the bits that it may have or has without a budget. How many level tables
  // a layer needs depends on its weights, so students are made and counted.
  void count_code_bytes() {
    const auto count = [&](std::int64_t bits) {
      const quant::Student student = student_of(teacher_, recipe_, bits);
      for (const quant::WeightSite& site : quant::weight_sites(student))
        code_bytes_[{student.graph[site.layer].name, site.op->spec().num_bits}] =
            exporters::code_bytes(student, site);
    };
    count(0);
    for (std::int64_t bits = recipe_.mixed.min_bits; bits <= recipe_.mixed.max_bits; ++bits)
      count(bits);
  }

  const models::Model& teacher_;
  const Recipe& recipe_;
  std::vector<std::int64_t> macs_;                                           // by node
  std::map<std::pair<std::string, std::int64_t>, std::int64_t> code_bytes_;  // by layer and bits
};

// What a layer may be; `now`: what it is without a budget.
std::vector<Candidate> candidates_of(const LayerSensitivity& layer, const StudentLayer& now,
                                     const Target& target) {
  std::vector<Candidate> candidates;
  const auto add = [&](std::int64_t weight_bits, std::int64_t input_bits, double sensitivity) {
    candidates.push_back(
        {weight_bits, input_bits, {target.cost(layer, weight_bits, input_bits), sensitivity}});
  };
  for (const auto& [bits, sensitivity] : layer.weight_sensitivity) {
    if (target.size() || layer.input_sensitivity.empty())
      add(bits, now.activation_bits, sensitivity);
    if (target.size()) continue;
    for (const auto& [input_bits, input_sensitivity] : layer.input_sensitivity)
      add(bits, input_bits, sensitivity + input_sensitivity);
  }
  return candidates;
}

}  // namespace

std::vector<LayerSensitivity> measure_sensitivity(const models::Model& teacher,
                                                  const std::string& sha256, const Recipe& recipe,
                                                  bool inputs, Observer& observer) {
  const at::Tensor images =
      distilled_images(teacher, sha256, recipe, {"sensitivity", recipe.mixed.images}, observer);
  quant::SensitivityJob job{
      teacher, recipe.quantize, images, recipe.mixed.min_bits, recipe.mixed.max_bits, inputs};
  job.seed = static_cast<std::uint64_t>(recipe.process.seed);
  const bool dead_leaves = recipe.images.source == ImageSource::dead_leaves;
  if (quant::rounding_method(recipe.quantize.weights.rounding).needs_images() && dead_leaves)
    job.rounding_images =
        made_images(image_job(teacher, recipe, recipe.quantize.gptq.images), observer)
            .to(teacher.parameters.device());
  return quant::measure_sensitivity(job, observer);
}

MixedResult choose_bits(const models::Model& teacher, const std::string& sha256, Recipe& recipe,
                        Observer& observer) {
  // These are what is to be found.
  recipe.quantize.weights.layer_bits.clear();
  recipe.quantize.activations.layer_bits.clear();
  const Target target(teacher, recipe);
  const auto layers = measure_sensitivity(teacher, sha256, recipe, !target.size(), observer);
  const quant::Student uniform = student_of(teacher, recipe, 0);
  const auto now = student_layers(uniform);
  std::int64_t fixed = target.cost(uniform);  // what no choice changes
  std::vector<std::size_t> open;              // layers that may change
  std::vector<std::vector<Candidate>> candidates;
  std::vector<std::vector<quant::BitChoice>> groups;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    if (layers[l].end && recipe.quantize.first_last_bits > 0) continue;
    open.push_back(l);
    fixed -= target.cost(layers[l], now[l].weight_bits, now[l].activation_bits);
    candidates.push_back(candidates_of(layers[l], now[l], target));
    groups.emplace_back();
    for (const Candidate& candidate : candidates.back()) groups.back().push_back(candidate.choice);
  }
  const auto found = quant::allocate_bits(groups, target.budget - fixed);
  if (!found) throw Error(ErrorCode::internal, "no choice of bits meets a budget that was reached");

  MixedResult result{target.size() ? "size" : "bops", target.budget, fixed + found->cost,
                     found->sensitivity};
  observer.on_message(LogLevel::info, "bits chosen: " + target.words(result.used) + " of " +
                                          target.words(result.budget));
  for (std::size_t i = 0; i < open.size(); ++i) {
    const LayerSensitivity& layer = layers[open[i]];
    const Candidate& chosen = candidates[i][found->chosen[i]];
    recipe.quantize.weights.layer_bits.push_back({layer.layer, chosen.weight_bits});
    if (!target.size() && !layer.input_sensitivity.empty())
      recipe.quantize.activations.layer_bits.push_back({layer.layer, chosen.input_bits});
  }
  recipe.mixed.target_size = recipe.mixed.target_bops = {};
  return result;
}

}  // namespace zsq::pipeline
