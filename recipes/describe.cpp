// SPDX-License-Identifier: Apache-2.0
// Recipe -> text, and what a whole recipe has to satisfy.
#include <algorithm>

#include "recipes/recipe.h"
#include "recipes/values.h"

namespace zsq {
namespace {

void require(bool holds, const std::string& message) {
  if (!holds) throw Error(ErrorCode::usage, message);
}

void validate_quantizers(const QuantOptions& q) {
  require(q.first_last_bits != 1, "quantize.first_last_bits: 1 was given; 0 (as the rest) or 2..8");
  require(q.second_input_bits != 1,
          "quantize.second_input_bits: 1 was given; 0 (as the rest) or 2..8");
  require(
      !q.weights.range_every_step || q.weights.range == WeightRange::min_max,
      "quantize.weights.range_every_step takes the minimum and maximum at each forward pass, which "
      "contradicts quantize.weights.range: mse; set quantize.weights.range=min_max, or "
      "quantize.weights.range_every_step=false");
  require(q.split_expansion == 0 || q.split_channels > 0,
          "quantize.split_expansion is for copies of channels that quantize.split_channels chooses "
          "on images; give it a number of them, as 32, or set split_expansion=0");
  require(q.split_expansion == 0 || q.weights.per_channel,
          "quantize.split_expansion needs quantize.weights.per_channel=true");
  require(q.split_channels == 0 || q.equalize == Equalization::depthwise,
          "quantize.split_channels shifts copies of a channel by parts of a step of its own, which "
          "only quantize.equalize=depthwise gives it; set that, or split_channels=0");
  require(q.mode == Mode::deploy || q.activations.layer_bits.empty(),
          "quantize.activations.layer_bits is of the mode deploy; in the mode paper all "
          "activations have quantize.activations.num_bits");
}

void validate_budget(const Recipe& recipe) {
  const MixedOptions& m = recipe.mixed;
  const int budgets =
      (m.target_size.amount > 0) + (m.target_bops.amount > 0) + (m.target_cost.amount > 0);
  require(budgets <= 1, "of mixed.target_size, mixed.target_bops and mixed.target_cost " +
                            std::to_string(budgets) +
                            " are given; bits are chosen under one budget: leave the others at 0");
  require(m.target_cost.amount == 0 || !m.cost_table.empty(),
          "mixed.target_cost limits the sum of the costs in mixed.cost_table, which names no file");
  require(m.target_cost.amount > 0 || m.cost_table.empty(),
          "mixed.cost_table is used by nothing: set mixed.target_cost, the largest sum of its "
          "costs (above 0)");
  require(m.min_bits <= m.max_bits, "mixed.min_bits is above mixed.max_bits");
  require(m.target_bops.amount == 0 || recipe.quantize.mode == Mode::deploy,
          "mixed.target_bops gives each layer's input bits of its own, which the mode paper does "
          "not know; set quantize.mode=deploy or a mixed.target_size");
}

// Of what learns from images: GPTQ-style rounding, reconstruction, fine-tuning.
void validate_learning(const Recipe& recipe) {
  require(std::is_sorted(recipe.finetune.milestones.begin(), recipe.finetune.milestones.end()),
          "finetune.milestones: " + recipes::format_value(recipe.finetune.milestones) +
              " is not in ascending order");
  require(!recipe.finetune.loss_terms.empty(),
          "finetune.loss_terms is empty: the student would learn from nothing");
  const auto perturbed = [](const LossWeight& w) {
    return w.term == LossTerm::perturbed_kl_divergence;
  };
  require(
      !std::all_of(recipe.finetune.loss_terms.begin(), recipe.finetune.loss_terms.end(), perturbed),
      "finetune.loss_terms: perturbed_kl_divergence follows the gradient of the other terms, "
      "and there is none; write [kl_divergence=1, perturbed_kl_divergence=1]");
  require(
      recipe.finetune.optimizer != Optimizer::adam || recipe.finetune.inundation == Inundation::off,
      "finetune.optimizer=adam takes steps of its own length, which finetune.inundation=" +
          std::string(enum_name(recipe.finetune.inundation)) +
          " would change; set finetune.inundation=off");
  const bool reconstructs = recipe.reconstruct.iterations > 0;
  const bool on_images = needs_images(recipe.quantize.weights.rounding);
  require(
      !recipe.generate.bank.empty() || recipe.generate.bank_share == 0,
      "generate.bank_share is the share of each student batch that is taken from generate.bank, "
      "which names no file");
  const bool tunes = recipe.finetune.images > 0;
  require(!tunes || recipe.generate.bank_share == 0,
          "finetune.images takes the place of the generator, of which generate.bank_share leaves a "
          "part; set one of them to 0");
  require(recipe.generate.bank.empty() || recipe.generate.bank_share > 0 || tunes || reconstructs ||
              on_images,
          "generate.bank is used by nothing: set generate.bank_share, the share of each student "
          "batch (above 0) that is taken from it, or reconstruct.iterations");
  require(!reconstructs || !recipe.quantize.weights.range_every_step,
          "reconstruct.iterations learns the rounding on ranges that stay, which contradicts "
          "quantize.weights.range_every_step; set one of them to 0 or false");
  require(!on_images || !recipe.quantize.weights.range_every_step,
          "quantize.weights.rounding=" + std::string(enum_name(recipe.quantize.weights.rounding)) +
              " finds codes on ranges that stay, which contradicts "
              "quantize.weights.range_every_step; set that to false, or the rounding to squant");
}

void validate_level_tables(const Recipe& recipe) {
  const bool tables = !recipe.quantize.weights.level_tables.empty();
  require(
      !tables || (recipe.quantize.weights.per_channel && !recipe.quantize.weights.range_every_step),
      "quantize.weights.level_tables needs quantize.weights.per_channel=true and "
      "quantize.weights.range_every_step=false");
  require(tables || recipe.quantize.weights.level_choice == LevelChoice::channel,
          "quantize.weights.level_choice=layer chooses among quantize.weights.level_tables, which "
          "is empty");
}

}  // namespace

void validate(const Recipe& recipe) {
  visit_recipe_settings(
      [](const SettingInfo& info, const auto& value) {
        try {
          recipes::check_range(info, value);
        } catch (const Error& error) {
          throw Error(error.code(), std::string(info.key) + ": " + error.what());
        }
      },
      recipe);
  validate_quantizers(recipe.quantize);
  validate_budget(recipe);
  validate_learning(recipe);
  validate_level_tables(recipe);
  require(recipe.exporting.onnx || recipe.exporting.safetensors,
          "export.onnx and export.safetensors are both false: nothing would be written");
  require(recipe.exporting.onnx || !recipe.exporting.packed,
          "export.packed is a form of model.onnx, which export.onnx=false leaves out");
}

std::string to_yaml(const Recipe& recipe) {
  std::string text;
  for (const auto& [key, value] : {std::pair{"about", &recipe.about}, {"expects", &recipe.expects}})
    if (!value->empty()) text += std::string(key) + ": " + recipes::format_string(*value) + "\n";

  std::vector<std::string> open;  // sections of the line before
  visit_recipe_settings(
      [&](const SettingInfo& info, const auto& value) {
        std::vector<std::string> path;
        std::istringstream parts{std::string(info.key)};
        for (std::string part; std::getline(parts, part, '.');) path.push_back(part);
        const std::string leaf = path.back();
        path.pop_back();
        std::size_t shared = 0;
        while (shared < std::min(open.size(), path.size()) && open[shared] == path[shared])
          ++shared;
        for (std::size_t i = shared; i < path.size(); ++i)
          text += std::string(2 * i, ' ') + path[i] + ":\n";
        text +=
            std::string(2 * path.size(), ' ') + leaf + ": " + recipes::format_value(value) + "\n";
        open = path;
      },
      recipe);
  return text;
}

std::vector<SettingHelp> describe_settings(const Recipe& recipe) {
  std::vector<SettingHelp> settings;
  visit_recipe_settings(
      [&]<class T>(const SettingInfo& info, const T& value) {
        settings.push_back({std::string(info.key), recipes::format_value(value),
                            recipes::choices<T>(info), std::string(info.help),
                            std::string(info.source)});
      },
      recipe);
  return settings;
}

}  // namespace zsq
