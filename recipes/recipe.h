// SPDX-License-Identifier: Apache-2.0
// A recipe is every setting of a run. YAML in, options structs out; torch-free.
#pragma once
#include <string>
#include <vector>

#include "eval/options.h"
#include "generator/image_options.h"
#include "generator/options.h"
#include "quant/mixed_options.h"
#include "quant/options.h"
#include "recipes/options.h"
#include "train/options.h"
#include "train/reconstruct_options.h"

namespace zsq {

struct Recipe {
  std::string name;     // as asked for: "deploy", "paper/ait_resnet18_w4a4", "my.yaml"
  std::string about;    // one line for a reader
  std::string expects;  // published result that the recipe reproduces; empty if there is none

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
// `overrides` are "dotted.key=value" and come last, in order. Error(usage) names file and line, or
// the override, the key and the nearest known one.
Recipe load_recipe(const std::string& name = "deploy",
                   const std::vector<std::string>& overrides = {});

// Sets "dotted.key=value" on a recipe; Error(usage) as above.
void apply_override(Recipe& recipe, const std::string& override);

// Ranges of all settings and what they exclude together. Error(usage) says key, value and range.
void validate(const Recipe& recipe);

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
