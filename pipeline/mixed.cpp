// SPDX-License-Identifier: Apache-2.0
#include "pipeline/mixed.h"

#include <cstdio>

#include "exporters/export.h"
#include "pipeline/distilled.h"
#include "pipeline/student_layers.h"
#include "quant/allocate_bits.h"

namespace zsq::pipeline {
namespace {

using quant::LayerSensitivity;

// Bits of one layer and what they cost.
struct Candidate {
  std::int64_t weight_bits, input_bits;
  quant::BitChoice choice;
};

// What does not depend on the choice.
struct Frame {
  bool size;  // else bit operations
  std::int64_t whole = 0, fixed = 0, budget = 0;
  std::vector<std::vector<Candidate>> candidates;  // by layer; one where the bits are fixed
};

std::string amount_text(const Frame& frame, std::int64_t amount) {
  char text[64];
  if (frame.size)
    std::snprintf(text, sizeof text, "%.3fkB", static_cast<double>(amount) / 1e3);
  else
    std::snprintf(text, sizeof text, "%.6gM bit operations", static_cast<double>(amount) / 1e6);
  return text;
}

class Chooser {
 public:
  Chooser(const models::Model& teacher, const Recipe& recipe,
          const std::vector<LayerSensitivity>& layers)
      : recipe_(recipe), layers_(layers) {
    QuantOptions quickest = recipe.quantize;  // only bits matter here, so the quickest rules serve
    quickest.weights.range = WeightRange::min_max;
    quickest.weights.rounding = WeightRounding::nearest;
    quickest.bias_correction = BiasCorrection::none;
    student_ = quant::insert_quantizers(teacher, quickest);
    uniform_ = student_layers(student_);
    frame_.size = recipe.mixed.target_size.amount > 0;
    const auto bytes = exporters::parameter_bytes(teacher, student_);
    frame_.whole = frame_.size ? bytes.fp32_bytes : 0;
    frame_.fixed = frame_.size ? bytes.quantized_bytes : 0;
    for (std::size_t l = 0; l < layers.size(); ++l) add_layer(l);
    const Budget& target = frame_.size ? recipe.mixed.target_size : recipe.mixed.target_bops;
    frame_.budget = static_cast<std::int64_t>(
        target.percent ? target.amount / 100 * static_cast<double>(frame_.whole) : target.amount);
  }

  const Frame& frame() const { return frame_; }

 private:
  void add_layer(std::size_t l) {
    const LayerSensitivity& layer = layers_[l];
    const StudentLayer& now = uniform_[l];
    const bool keep = layer.end && recipe_.quantize.first_last_bits > 0;
    // The bits of the student without a budget are in `fixed`; candidates count what they add.
    if (frame_.size) frame_.fixed -= cost(layer, now.weight_bits, 0);
    if (!frame_.size) frame_.whole += layer.macs * 8 * 8;
    std::vector<Candidate> candidates;
    const auto add = [&](std::int64_t weight_bits, double weight_damage, std::int64_t input_bits,
                         double input_damage) {
      candidates.push_back({weight_bits,
                            input_bits,
                            {cost(layer, weight_bits, input_bits), weight_damage + input_damage}});
    };
    for (const auto& [bits, damage] : layer.weight_damage) {
      if (keep) continue;
      if (frame_.size || layer.input_damage.empty()) {
        add(bits, damage, now.activation_bits, 0);
        continue;
      }
      for (const auto& [input_bits, input_damage] : layer.input_damage)
        add(bits, damage, input_bits, input_damage);
    }
    if (keep) add(now.weight_bits, 0, now.activation_bits, 0);
    frame_.candidates.push_back(std::move(candidates));
  }

  std::int64_t cost(const LayerSensitivity& layer, std::int64_t weight_bits,
                    std::int64_t input_bits) const {
    if (frame_.size)
      return exporters::code_bytes(layer.weights, layer.channels, weight_bits,
                                   recipe_.quantize.weights.symmetric);
    return layer.macs * weight_bits * (input_bits ? input_bits : 32);
  }

  const Recipe& recipe_;
  const std::vector<LayerSensitivity>& layers_;
  quant::Student student_;
  std::vector<StudentLayer> uniform_;
  Frame frame_;
};

quant::Allocation allocate(const Frame& frame) {
  std::vector<std::vector<quant::BitChoice>> groups;
  for (const auto& layer : frame.candidates) {
    groups.emplace_back();
    for (const Candidate& candidate : layer) groups.back().push_back(candidate.choice);
  }
  const auto found = quant::allocate_bits(groups, frame.budget - frame.fixed);
  if (found) return *found;
  const std::int64_t least = frame.fixed + quant::least_cost(groups);
  char share[32];
  std::snprintf(share, sizeof share, "%.2f%%",
                100 * static_cast<double>(least) / static_cast<double>(frame.whole));
  throw Error(ErrorCode::usage,
              std::string(frame.size ? "mixed.target_size" : "mixed.target_bops") + ": " +
                  amount_text(frame, frame.budget) + " cannot be reached; the smallest is " +
                  amount_text(frame, least) + " (" + share +
                  "), with mixed.min_bits in every layer that may change. "
                  "quantize.first_last_bits=0 lets the first and last layer change too");
}

}  // namespace

std::vector<LayerSensitivity> measure_sensitivity(const models::Model& teacher,
                                                  const std::string& sha256, const Recipe& recipe,
                                                  bool inputs, Observer& observer) {
  const at::Tensor images =
      distilled_images(teacher, sha256, recipe, {"sensitivity", recipe.mixed.images}, observer);
  return quant::measure_sensitivity(
      {teacher, recipe.quantize, images, recipe.mixed.min_bits, recipe.mixed.max_bits, inputs},
      observer);
}

MixedResult choose_bits(const models::Model& teacher, const std::string& sha256, Recipe& recipe,
                        Observer& observer) {
  const bool size = recipe.mixed.target_size.amount > 0;
  // These are what is to be found.
  recipe.quantize.weights.layer_bits.clear();
  recipe.quantize.activations.layer_bits.clear();
  const auto layers = measure_sensitivity(teacher, sha256, recipe, !size, observer);
  const Frame frame = Chooser(teacher, recipe, layers).frame();
  const quant::Allocation allocation = allocate(frame);

  MixedResult result;
  result.budget_kind = size ? "size" : "bops";
  result.budget = frame.budget;
  result.used = frame.fixed + allocation.cost;
  result.predicted_divergence = allocation.damage;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const Candidate& chosen = frame.candidates[l][allocation.chosen[l]];
    if (layers[l].end && recipe.quantize.first_last_bits > 0) continue;  // keeps its bits anyway
    recipe.quantize.weights.layer_bits.push_back({layers[l].layer, chosen.weight_bits});
    if (!size && !layers[l].input_damage.empty())
      recipe.quantize.activations.layer_bits.push_back({layers[l].layer, chosen.input_bits});
  }
  recipe.mixed.target_size = recipe.mixed.target_bops = {};
  observer.on_message(LogLevel::info, "bits chosen: " + amount_text(frame, result.used) + " of " +
                                          amount_text(frame, result.budget));
  return result;
}

}  // namespace zsq::pipeline
