// SPDX-License-Identifier: Apache-2.0
// YAML text, `extends:` chains and overrides -> Recipe.
#include "recipes/recipe.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>
#include <system_error>

#include "recipes/builtin.h"
#include "recipes/read_text.h"
#include "recipes/values.h"

namespace zsq {
namespace {

namespace fs = std::filesystem;
using recipes::RawValue;

[[noreturn]] void fail(const std::string& where, const std::string& message) {
  throw Error(ErrorCode::usage, where + ": " + message);
}

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

// A preset is a set of keys: it replaces those that were given before it. Of the two forms of the
// crop the last one counts.
void replace_earlier(DataOptions& data, const std::string& key) {
  if (key == "data.preset") static_cast<PreprocessingOptions&>(data) = {.preset = data.preset};
  if (key == "data.resize" && data.resize) data.crop_fraction.reset();
  if (key == "data.crop_fraction" && data.crop_fraction) data.resize.reset();
}

void set_value(Recipe& recipe, const std::string& key, const RawValue& raw,
               const std::string& where) {
  bool found = false;
  visit_recipe_settings(
      [&](const SettingInfo& info, auto& value) {
        if (info.key != key) return;
        found = true;
        try {
          recipes::parse_value(raw, value);
          recipes::check_range(info, value);
          replace_earlier(recipe.data, key);
        } catch (const Error& error) {
          fail(where, key + ": " + error.what());
        }
      },
      recipe);
  if (!found) fail(where, unknown_key_message(key));
}

struct Source {
  std::string name;  // as messages name it
  std::string text;
  fs::path folder;  // where `extends:` looks first; empty for a built-in recipe
};

Source find_source(const std::string& name, const fs::path& folder, const std::string& where) {
  for (const auto& [known, text] : recipes::builtin_recipes())
    if (known == name) return {name, std::string(text), {}};
  const fs::path path = folder.empty() ? fs::path(name) : folder / name;
  std::error_code unreachable;
  if (fs::is_regular_file(path, unreachable)) {
    auto text = recipes::read_text(path);
    if (!text)
      fail(where, "cannot read the recipe '" + path.string() + "', or it is longer than 1 MiB");
    return {path.string(), std::move(*text),
            path.has_parent_path() ? path.parent_path() : fs::path(".")};
  }
  fail(where, unknown_name_message("built-in recipe or a file", name, recipe_names()));
}

class Loader {
 public:
  explicit Loader(Recipe& recipe) : recipe_(recipe) {}

  // Names joined by '+', one after the other; a file's path may hold one, too.
  void load_joined(const std::string& names, const fs::path& folder, const std::string& where) {
    std::error_code unreachable;
    if (fs::is_regular_file(folder / names, unreachable)) return load(names, folder, where);
    std::istringstream parts(names);
    for (std::string part; std::getline(parts, part, '+');) load(part, folder, where);
  }

 private:
  void load(const std::string& name, const fs::path& folder, const std::string& where) {
    // Each of a few files that extend the next one twice would be read twice as often.
    if (++loaded_ > kMaxLoaded)
      fail(where, "recipes extend more than " + std::to_string(kMaxLoaded) + " others");
    const Source source = find_source(name, folder, where);
    if (std::find(chain_.begin(), chain_.end(), source.name) != chain_.end()) {
      std::string cycle;
      for (const std::string& link : chain_) cycle += link + " -> ";
      fail(where, "recipes extend each other in a circle: " + cycle + source.name);
    }
    chain_.push_back(source.name);
    read(source);
    chain_.pop_back();
  }

  void read(const Source& source) {
    try {
      read_root(source, YAML::Load(source.text));
    } catch (const YAML::Exception& error) {
      fail(source.name + ":" + std::to_string(error.mark.line + 1), "not YAML: " + error.msg);
    }
  }

  void read_root(const Source& source, const YAML::Node& root) {
    if (!root.IsMap())
      fail(source.name,
           "a recipe is a map of sections (finetune: ..., quantize: ...); found something else");
    if (const YAML::Node parents = root["extends"])
      for (const std::string& parent : raw_value(parents, source, "extends").items)
        load_joined(parent, source.folder, place(source, parents));
    read_map(source, root, "");
  }

  void read_map(const Source& source, const YAML::Node& map, const std::string& prefix) {
    std::set<std::string> seen;
    const auto is_preset = [](const YAML::Node& key) {
      return key.IsScalar() && key.Scalar() == "preset";
    };
    // Whatever its line, a preset comes before the keys that change it.
    for (const auto& entry : map)
      if (is_preset(entry.first)) read_entry(source, entry.first, entry.second, prefix, seen);
    for (const auto& entry : map)
      if (!is_preset(entry.first)) read_entry(source, entry.first, entry.second, prefix, seen);
  }

  void read_entry(const Source& source, const YAML::Node& name, const YAML::Node& value,
                  const std::string& prefix, std::set<std::string>& seen) {
    const std::string where = place(source, name);
    if (!name.IsScalar()) fail(where, "a key is a list or a map; a name was expected");
    const std::string key = prefix + name.Scalar();
    if (!seen.insert(key).second) fail(where, "'" + key + "' is given twice");
    if (key == "extends") return;
    if (key == "about" || key == "expects") {
      if (!value.IsScalar()) fail(where, "'" + key + "' is one line of text");
      (key == "about" ? recipe_.about : recipe_.expects) = value.Scalar();
    } else if (value.IsMap() && is_section(key)) {
      read_map(source, value, key + ".");
    } else if (!is_setting(key)) {
      fail(where, is_section(key) ? "'" + key + "' is a section; it holds 'name: value' lines"
                                  : unknown_key_message(key));
    } else {
      set_value(recipe_, key, raw_value(value, source, key), where);
    }
  }

  RawValue raw_value(const YAML::Node& node, const Source& source, const std::string& key) const {
    if (node.IsScalar()) return {{node.Scalar()}, false};
    if (!node.IsSequence()) fail(place(source, node), "'" + key + "' has no value");
    RawValue raw{{}, true};
    for (const YAML::Node& item : node) {
      if (!item.IsScalar()) fail(place(source, item), "'" + key + "' holds a list inside a list");
      raw.items.push_back(item.Scalar());
    }
    return raw;
  }

  static std::string place(const Source& source, const YAML::Node& node) {
    return source.name + ":" + std::to_string(node.Mark().line + 1);
  }

  static constexpr int kMaxLoaded = 100;

  Recipe& recipe_;
  std::vector<std::string> chain_;
  int loaded_ = 0;
};

}  // namespace

Recipe load_recipe(const std::string& name, const std::vector<std::string>& overrides) {
  Recipe recipe;
  Loader(recipe).load_joined(name, {}, "recipe");
  recipe.name = name;
  for (const std::string& override : overrides) apply_override(recipe, override);
  validate(recipe);
  return recipe;
}

void apply_override(Recipe& recipe, const std::string& override) {
  const std::size_t equals = override.find('=');
  const std::string key = override.substr(0, equals), where = "'" + override + "'";
  if (equals == std::string::npos)
    fail(where, "an override has the form section.key=value; the value is missing");
  if (is_section(key))
    fail(where, "'" + key + "' is a section; an override has the form " + key + ".key=value");
  set_value(recipe, key, {{override.substr(equals + 1)}, false}, where);
}

std::vector<std::string> recipe_names() {
  std::vector<std::string> names;
  for (const auto& [name, text] : recipes::builtin_recipes()) names.emplace_back(name);
  return names;
}

std::string recipe_source(const std::string& name) { return find_source(name, {}, "recipe").text; }

}  // namespace zsq
