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
#include "recipes/keys.h"
#include "recipes/overlays.h"
#include "recipes/read_text.h"
#include "recipes/values.h"

namespace zsq {
namespace {

namespace fs = std::filesystem;
using recipes::is_section;
using recipes::is_setting;
using recipes::RawValue;
using recipes::set_value;
using recipes::unknown_key_message;

[[noreturn]] void fail(const std::string& where, const std::string& message) {
  throw Error(ErrorCode::usage, where + ": " + message);
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
  // `decided`: keys that are set after all files are read.
  Loader(Recipe& recipe, std::set<std::string> decided)
      : recipe_(recipe), decided_(std::move(decided)) {}

  // Names joined by '+', one after the other; a file's path may hold one, too.
  void load_joined(const std::string& names, const fs::path& folder, const std::string& where) {
    std::error_code unreachable;
    if (names.find('+') == std::string::npos || fs::is_regular_file(folder / names, unreachable)) {
      load(names, folder, where);
      return;
    }
    joined_.emplace_back(recipe_, decided_);
    std::istringstream parts(names);
    for (std::string part; std::getline(parts, part, '+');) {
      joined_.back().begin(part);
      const auto kind = load(part, folder, where);
      try {
        joined_.back().end(kind);
      } catch (const Error& error) {
        fail(std::string(where).append(" ").append(names), error.what());
      }
    }
    joined_.pop_back();
  }

 private:
  // The kind that the file says, or that a built-in one has by its folder.
  std::optional<RecipeKind> load(const std::string& name, const fs::path& folder,
                                 const std::string& where) {
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
    const auto kind = read(source);
    chain_.pop_back();
    return kind;
  }

  std::optional<RecipeKind> read(const Source& source) {
    try {
      return read_root(source, YAML::Load(source.text));
    } catch (const YAML::Exception& error) {
      fail(source.name + ":" + std::to_string(error.mark.line + 1), "not YAML: " + error.msg);
    }
  }

  std::optional<RecipeKind> read_root(const Source& source, const YAML::Node& root) {
    if (!root.IsMap())
      fail(source.name,
           "a recipe is a map of sections (finetune: ..., quantize: ...); found something else");
    if (const YAML::Node parents = root["extends"])
      for (const std::string& parent : raw_value(parents, source, "extends").items)
        load_joined(parent, source.folder, place(source, parents));
    const auto overrides = keys_in(source, root, "overrides"),
               yields = keys_in(source, root, "yields");
    for (auto& chain : joined_) chain.declare(overrides, yields);
    const auto kind = kind_of(source, root["kind"]);
    if (chain_.size() == 1 && joined_.empty()) recipe_.kind = kind.value_or(RecipeKind::recipe);
    read_map(source, root, "");
    return kind;
  }

  static std::optional<RecipeKind> kind_of(const Source& source, const YAML::Node& node) {
    if (node && !node.IsScalar()) fail(place(source, node), "'kind' is one word");
    if (node)
      return choice<RecipeKind>("kind of recipe", node.Scalar(), place(source, node) + ": ");
    if (!source.folder.empty()) return std::nullopt;
    return enum_of<RecipeKind>(source.name.substr(0, source.name.find('/')));
  }

  std::vector<std::string> keys_in(const Source& source, const YAML::Node& root,
                                   const std::string& name) const {
    const YAML::Node node = root[name];
    if (!node) return {};
    auto keys = raw_value(node, source, name).items;
    for (const std::string& key : keys)
      if (!is_setting(key)) fail(place(source, node), name + ": " + unknown_key_message(key));
    return keys;
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
    if (key == "extends" || key == "kind" || key == "overrides" || key == "yields") return;
    if (std::string* text = line_of(key)) {
      if (!value.IsScalar()) fail(where, "'" + key + "' is one line of text");
      *text = value.Scalar();
    } else if (value.IsMap() && is_section(key)) {
      read_map(source, value, key + ".");
    } else if (!is_setting(key)) {
      fail(where, is_section(key) ? "'" + key + "' is a section; it holds 'name: value' lines"
                                  : unknown_key_message(key));
    } else if (std::none_of(joined_.begin(), joined_.end(),
                            [&](const auto& c) { return c.is_left_to_earlier(key); })) {
      for (auto& chain : joined_) chain.note(key);
      set_value(recipe_, key, raw_value(value, source, key), where);
    }
  }

  // Lines for a reader, which a setting is not; those of the ten that users need are not inherited.
  std::string* line_of(const std::string& key) {
    if (key == "about") return &recipe_.about;
    if (key == "expects") return &recipe_.expects;
    for (const auto& [name, line] :
         {std::pair{"when", &recipe_.when}, {"seconds", &recipe_.seconds}, {"loss", &recipe_.loss}})
      if (key == name) return chain_.size() == 1 ? line : &inherited_;
    return nullptr;
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
  const std::set<std::string> decided_;
  std::vector<recipes::OverlayChain> joined_;  // the outermost one first
  std::vector<std::string> chain_;
  std::string inherited_;  // a line that is not taken over
  int loaded_ = 0;
};

}  // namespace

Recipe load_recipe(const std::string& name, const std::vector<std::string>& overrides) {
  Recipe recipe;
  std::set<std::string> decided;
  for (const std::string& override : overrides)
    decided.insert(override.substr(0, override.find('=')));
  Loader(recipe, std::move(decided)).load_joined(name, {}, "recipe");
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
