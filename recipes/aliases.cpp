// SPDX-License-Identifier: Apache-2.0
#include "recipes/aliases.h"

#include <algorithm>
#include <array>

namespace zsq::recipes {
namespace {

constexpr std::array kKeys{
    Renamed{"quantize.hessian.images", "quantize.gptq.images"},
    Renamed{"quantize.hessian.damping", "quantize.gptq.damping"},
    Renamed{"quantize.hessian.drift", "quantize.gptq.error_compensation"},
    Renamed{"quantize.hessian.positions", "quantize.gptq.positions"},
    Renamed{"generate.images.hardness", "generate.images.focal_gamma"},
    Renamed{"generate.images.swing", "generate.images.swing_convolution"},
    Renamed{"generate.images.low_pass", "generate.images.low_pass_cutoff"},
    Renamed{"reconstruct.views", "reconstruct.augmentations_per_image"},
    Renamed{"reconstruct.drop", "reconstruct.qdrop_probability"},
    Renamed{"reconstruct.rounding_travel", "reconstruct.rounding_lr"},
    Renamed{"reconstruct.scale_travel", "reconstruct.scale_lr"},
    Renamed{"reconstruct.bias_travel", "reconstruct.bias_lr"},
    Renamed{"reconstruct.rounding_weight", "reconstruct.regularizer_weight"},
    Renamed{"reconstruct.sharpness_start", "reconstruct.beta_start"},
    Renamed{"reconstruct.sharpness_end", "reconstruct.beta_end"},
    Renamed{"finetune.features", "finetune.loss_terms"},
    Renamed{"finetune.feature_loss", "finetune.loss_terms"},
    Renamed{"finetune.learn_scales", "finetune.learnable_scales"},
    Renamed{"finetune.lr_scale", "finetune.scale_lr"},
    Renamed{"finetune.lr_affine", "finetune.affine_lr"},
    Renamed{"finetune.checks", "finetune.validation_checks"},
    Renamed{"finetune.check_images", "finetune.validation_images"},
};

struct RenamedValue {
  std::string_view key, before, now;
};

constexpr std::array kValues{
    RenamedValue{"quantize.weights.rounding", "hessian", "gptq"},
    RenamedValue{"generate.images.source", "drawn", "dead_leaves"},
    RenamedValue{"finetune.loss_terms", "none", "kl_divergence"},
    RenamedValue{"finetune.loss_terms", "mse", "kl_divergence=1,feature_mse=100"},
    RenamedValue{"finetune.loss_terms", "attention", "kl_divergence=1,channel_attention=100"},
    RenamedValue{"quantize.equalize", "false", "none"},
    RenamedValue{"quantize.equalize", "true", "all"},
};

constexpr std::array kRecipes{
    Renamed{"hessian", "gptq"},
    Renamed{"ablation/04_kl_loop", "ablation/04_kl_finetuning"},
    Renamed{"ablation/14_reconstruct_then_loop", "ablation/14_reconstruct_finetune"},
    Renamed{"ablation/15_hessian", "ablation/15_gptq"},
};

std::string current(std::span<const Renamed> table, const std::string& name) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const Renamed& entry) { return entry.before == name; });
  return found == table.end() ? name : std::string(found->now);
}

}  // namespace

std::span<const Renamed> former_keys() { return kKeys; }

std::span<const Renamed> former_recipes() { return kRecipes; }

std::string current_key(const std::string& key) { return current(kKeys, key); }

std::string current_recipe(const std::string& name) { return current(kRecipes, name); }

std::string current_value(const std::string& key, const std::string& value) {
  const auto found = std::find_if(kValues.begin(), kValues.end(), [&](const RenamedValue& entry) {
    return entry.key == key && entry.before == value;
  });
  return found == kValues.end() ? value : std::string(found->now);
}

bool is_feature_weight(const std::string& key) {
  return key == "finetune.feature_weight" || key == "finetune.feature_loss_weight";
}

bool is_former_section(const std::string& key) {
  return std::any_of(kKeys.begin(), kKeys.end(),
                     [&](const Renamed& entry) { return entry.before.starts_with(key + "."); });
}

}  // namespace zsq::recipes
