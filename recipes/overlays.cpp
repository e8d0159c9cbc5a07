// SPDX-License-Identifier: Apache-2.0
#include "recipes/overlays.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace zsq {
namespace recipes {

OverlayChain::Values OverlayChain::values_of(const Recipe& recipe) {
  Values values;
  for (const SettingHelp& setting : describe_settings(recipe)) values[setting.key] = setting.value;
  return values;
}

void OverlayChain::begin(const std::string& name) {
  name_ = name;
  before_ = values_of(recipe_);
  iterations_before_ = recipe_.finetune.iterations;
  reconstructed_before_ = recipe_.reconstruct.iterations > 0;
  keys_.clear();
  overrides_.clear();
  yields_.clear();
}

void OverlayChain::declare(const std::vector<std::string>& overrides,
                           const std::vector<std::string>& yields) {
  overrides_.insert(overrides.begin(), overrides.end());
  yields_.insert(yields.begin(), yields.end());
}

void OverlayChain::end(std::optional<RecipeKind> kind) {
  const bool follows = !std::exchange(first_, false);
  if (follows && (kind == RecipeKind::recipe || kind == RecipeKind::ablation))
    throw Error(ErrorCode::usage,
                "'" + name_ + "' is a recipe of its own (kind: " + std::string(enum_name(*kind)) +
                    ") and would replace what is joined before it; name it first "
                    "and join overlays to it (`zsq recipes` lists them)");
  if (!follows && kind != RecipeKind::overlay) return;
  const Values now = values_of(recipe_);
  require_agreement(now);
  for (const std::string& key : keys_) written_[key] = {name_, now.at(key)};
  if (!follows) return;
  Overlay overlay{.name = name_};
  for (const auto& [key, value] : now)
    if (before_.at(key) != value) overlay.changed.push_back(key);
  const bool replaced = recipe_.reconstruct.iterations > 0 && !reconstructed_before_;
  if (recipe_.finetune.iterations == 0 && !replaced) overlay.ended_iterations = iterations_before_;
  recipe_.overlays.push_back(std::move(overlay));
}

void OverlayChain::require_agreement(const Values& now) const {
  std::vector<std::string> keys;
  for (const std::string& key : keys_) {
    const auto earlier = written_.find(key);
    if (earlier != written_.end() && earlier->second.value != now.at(key) &&
        overrides_.count(key) == 0 && decided_.count(key) == 0)
      keys.push_back(key);
  }
  if (keys.empty()) return;
  const auto& [overlay, value] = written_.at(keys.front());
  std::string others;
  for (std::size_t i = 1; i < keys.size(); ++i) others += (i == 1 ? "" : ", ") + keys[i];
  throw Error(ErrorCode::usage,
              "the overlay '" + name_ + "' sets " + keys.front() + " to " + now.at(keys.front()) +
                  ", and '" + overlay + "' before it sets " + value +
                  (others.empty() ? "" : "; they also differ in " + others) +
                  ". Leave one of them out, give --set " + keys.front() +
                  "=VALUE, or join a file of yours that has 'extends: " + name_ +
                  "' and 'overrides: [" + keys.front() + (keys.size() > 1 ? ", ..." : "") + "]'");
}

}  // namespace recipes

namespace {

bool makes_images(const Recipe& r) {
  return r.process.automatic || r.reconstruct.iterations > 0 ||
         needs_images(r.quantize.weights.rounding) || r.quantize.channel_correction > 0 ||
         (r.finetune.iterations > 0 && r.finetune.images > 0) || !r.generate.bank.empty();
}

bool has_level_tables(const Recipe& r) {
  const auto takes_tables = [](std::int64_t bits) { return bits == 3 || bits == 4; };
  const MixedOptions& m = r.mixed;
  const auto& layers = r.quantize.weights.layer_bits;
  return takes_tables(r.quantize.weights.num_bits) ||
         m.target_size.amount + m.target_bops.amount + m.target_cost.amount > 0 ||
         std::any_of(layers.begin(), layers.end(),
                     [&](const LayerBits& layer) { return takes_tables(layer.bits); });
}

// Why a key changes nothing in this recipe; empty if it may.
std::string idle_because(const std::string& key, const Recipe& r) {
  const auto in = [&](const char* section) { return key.starts_with(section); };
  const bool tunes = r.finetune.iterations > 0;
  if (in("generate.images."))
    return makes_images(r) ? ""
                           : "the recipe makes no images, because nothing in it learns from them "
                             "(gptq, channel_correction, reconstruct or distill would)";
  if (in("generate."))
    return tunes && r.finetune.images == 0 ? "" : "the recipe trains no generator";
  if (in("finetune."))
    return tunes || key == "finetune.iterations" ? ""
                                                 : "the recipe does not fine-tune "
                                                   "(finetune.iterations: 0)";
  if (in("reconstruct."))
    return r.reconstruct.iterations > 0 || key == "reconstruct.iterations"
               ? ""
               : "the recipe reconstructs no blocks (reconstruct.iterations: 0)";
  if (in("quantize.weights.level_"))
    return has_level_tables(r) ? ""
                               : "level tables are for weights of 3 and 4 bits, and these have " +
                                     std::to_string(r.quantize.weights.num_bits) +
                                     " (quantize.weights.num_bits, --scheme)";
  return "";
}

std::string why_without_effect(const Overlay& overlay, const Recipe& recipe) {
  if (overlay.ended_iterations > 0 && recipe.finetune.iterations == 0)
    return "ends the fine-tuning (finetune.iterations: " +
           std::to_string(overlay.ended_iterations) +
           " before it, 0 after it) and puts nothing in its place; join it to a recipe that does "
           "not fine-tune, as instant, or give --set finetune.iterations=N";
  std::string reason = "every key that it sets has that value already";
  for (const std::string& key : overlay.changed) {
    reason = idle_because(key, recipe);
    if (reason.empty()) return "";
  }
  return "does nothing: " + reason + "; leave it out";
}

}  // namespace

void require_effect(const Recipe& recipe) {
  for (const Overlay& overlay : recipe.overlays)
    if (const std::string why = why_without_effect(overlay, recipe); !why.empty())
      throw Error(ErrorCode::usage,
                  "recipe " + recipe.name + ": the overlay '" + overlay.name + "' " + why);
}

}  // namespace zsq
