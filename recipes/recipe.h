// SPDX-License-Identifier: Apache-2.0
// A recipe is every setting of a run. YAML in, options structs out; torch-free.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/settings.h"
#include "eval/options.h"
#include "generator/image_options.h"
#include "generator/options.h"
#include "quant/mixed_options.h"
#include "quant/options.h"
#include "recipes/options.h"
#include "train/options.h"
#include "train/reconstruct_options.h"

namespace zsq {

enum class RecipeKind {
  recipe,    // a whole run
  overlay,   // joined to a recipe by '+': what it changes
  paper,     // a published experiment, or what such experiments share; those in the folder paper/
  ablation,  // a row of `zsq reproduce ablation`; those in the folder ablation/
};
template <>
struct EnumNames<RecipeKind> {
  static constexpr std::array<std::string_view, 4> names{"recipe", "overlay", "paper", "ablation"};
};

// What a name that was joined by '+' made of the recipe before it.
struct Overlay {
  std::string name;
  std::vector<std::string> changed = {};  // keys with another value than before
  std::int64_t ended_iterations = 0;      // of fine-tuning that it switched off; 0: it did not
};

struct Recipe {
  std::string name;     // as asked for: "deploy", "paper/ait_resnet18_w4a4", "my.yaml"
  std::string about;    // one line for a reader
  std::string expects;  // published result that the recipe reproduces; empty if there is none
  // Of a recipe that `zsq recipes` shows to every user, else empty: when to take it, seconds of
  // EfficientNet-Lite0 on two cores, and points of top-1 lost, both with what they were measured on
  // if it is something else.
  std::string when, seconds, loss;
  RecipeKind kind = RecipeKind::recipe;
  std::vector<Overlay> overlays;  // of "instant+gptq+tables": gptq and tables

  ModelSettings model;
  DataOptions data;
  GeneratorOptions generate;
  ImageOptions images;  // section "generate.images"
  QuantOptions quantize;
  MixedOptions mixed;
  ReconstructOptions reconstruct;
  TrainOptions finetune;
  ExportSettings exporting;  // section "export"
  ProcessOptions process;
};

// All settings in order of the sections, for every reader and writer of recipes.
template <class Visitor, class R>
void visit_recipe_settings(Visitor&& visit, R& recipe) {
  visit_model_settings(visit, recipe.model);
  visit_data_settings(visit, recipe.data);
  visit_generator_settings(visit, recipe.generate);
  visit_image_settings(visit, recipe.images);
  visit_quant_settings(visit, recipe.quantize);
  visit_mixed_settings(visit, recipe.mixed);
  visit_reconstruct_settings(visit, recipe.reconstruct);
  visit_train_settings(visit, recipe.finetune);
  visit_export_settings(visit, recipe.exporting);
  visit_process_settings(visit, recipe.process);
}

// `name` is a built-in recipe or a YAML file (something that ends in .yaml or .yml, or holds a path
// that exists). A file may name what it `extends:`, a built-in name or a file beside it.
// Names joined by '+' apply one after the other: a recipe, then overlays. An overlay that changes a
// key which another overlay of the chain set is an error, unless it lists the key under
// `overrides:`, or `overrides` decide it. These are "dotted.key=value" and come last, in order.
// Error(usage) names file and line, or the override, the key and the nearest known one.
Recipe load_recipe(const std::string& name = "deploy",
                   const std::vector<std::string>& overrides = {});

// Sets "dotted.key=value" on a recipe; Error(usage) as above.
void apply_override(Recipe& recipe, const std::string& override);

// Ranges of all settings and what they exclude together. Error(usage) says key, value and range.
void validate(const Recipe& recipe);

// Error(usage) that names an overlay which changes nothing in this recipe, or which ends its
// fine-tuning and puts nothing in the place; for a recipe with all of its settings, before a run.
void require_effect(const Recipe& recipe);

// Every setting, in a form that load_recipe reads back to the same recipe.
std::string to_yaml(const Recipe& recipe);

std::vector<std::string> recipe_names();             // built in, sorted
std::string recipe_source(const std::string& name);  // YAML text of a built-in recipe

// One line per setting: key, default, unit and range, help, source.
struct SettingHelp {
  std::string key, value, range, help, source;
};
std::vector<SettingHelp> describe_settings(const Recipe& recipe);

}  // namespace zsq
