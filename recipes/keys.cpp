// SPDX-License-Identifier: Apache-2.0
#include "recipes/keys.h"

#include <algorithm>

#include "core/error.h"
#include "core/nearest_name.h"

namespace zsq::recipes {
namespace {

const std::vector<std::string>& setting_keys() {
  static const auto all = [] {
    std::vector<std::string> keys;
    Recipe recipe;
    visit_recipe_settings([&](const SettingInfo& info, auto&) { keys.emplace_back(info.key); },
                          recipe);
    return keys;
  }();
  return all;
}

// A preset is a set of keys: it replaces those that were given before it. Of the two forms of the
// crop the last one counts.
void replace_earlier(DataOptions& data, const std::string& key) {
  if (key == "data.preset") static_cast<PreprocessingOptions&>(data) = {.preset = data.preset};
  if (key == "data.resize" && data.resize) data.crop_fraction.reset();
  if (key == "data.crop_fraction" && data.crop_fraction) data.resize.reset();
}

}  // namespace

std::string unknown_key_message(const std::string& key) {
  const auto& keys = setting_keys();
  std::string near = nearest_name(key, keys);
  // "iterations" is far from "finetune.iterations" by edit distance, but plainly meant; of several
  // such keys the shortest is.
  if (near.empty())
    for (const std::string& known : keys)
      if (known.ends_with("." + key) && (near.empty() || known.size() < near.size())) near = known;
  return "'" + key + "' is not a recipe key" +
         (near.empty() ? "" : "; did you mean '" + near + "'?") +
         " (`zsq recipes --settings` lists all keys)";
}

bool is_setting(const std::string& key) {
  const auto& keys = setting_keys();
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

bool is_section(const std::string& key) {
  const auto& keys = setting_keys();
  return std::any_of(keys.begin(), keys.end(),
                     [&](const std::string& known) { return known.starts_with(key + "."); });
}

void set_value(Recipe& recipe, const std::string& key, const RawValue& raw,
               const std::string& where) {
  bool found = false;
  visit_recipe_settings(
      [&](const SettingInfo& info, auto& value) {
        if (info.key != key) return;
        found = true;
        try {
          parse_value(raw, value);
          check_range(info, value);
          replace_earlier(recipe.data, key);
        } catch (const Error& error) {
          throw Error(ErrorCode::usage, where + ": " + key + ": " + error.what());
        }
      },
      recipe);
  if (!found) throw Error(ErrorCode::usage, where + ": " + unknown_key_message(key));
}

}  // namespace zsq::recipes
