// SPDX-License-Identifier: Apache-2.0
#include "recipes/table.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "core/error.h"
#include "core/nearest_name.h"
#include "recipes/builtin.h"
#include "recipes/read_text.h"
#include "recipes/recipe.h"
#include "recipes/values.h"

namespace zsq {
namespace {

namespace fs = std::filesystem;

// One map of a file; every key of it is taken once, and what is left over is an error.
class Map {
 public:
  Map(std::string source, const YAML::Node& node, const std::string& what)
      : source_(std::move(source)), node_(node) {
    if (!node_.IsMap()) fail(node_, what + " is a map of key: value lines");
  }

  void text(const char* key, std::string& value) {
    if (const YAML::Node node = take(key)) value = scalar(node, key);
  }
  template <class Number>
  void number(const char* key, Number& value) {
    const YAML::Node node = take(key);
    if (!node) return;
    try {
      recipes::parse_scalar(scalar(node, key), value);
    } catch (const Error& error) {
      fail(node, std::string(key) + ": " + error.what());
    }
  }
  template <class Number>
  void number(const char* key, std::optional<Number>& value) {
    Number given{};
    const bool there = static_cast<bool>(node_[key]);
    number(key, given);
    if (there) value = given;
  }
  void texts(const char* key, std::vector<std::string>& values) {
    each(key, [&](const YAML::Node& item) { values.push_back(scalar(item, key)); });
  }
  void numbers(const char* key, std::vector<std::int64_t>& values) {
    if (node_[key]) values.clear();
    each(key, [&](const YAML::Node& item) {
      values.push_back(recipes::parse_integer(scalar(item, key)));
    });
  }
  void each(const char* key, const std::function<void(const YAML::Node&)>& read) {
    const YAML::Node list = take(key);
    if (!list) return;
    if (!list.IsSequence()) fail(list, std::string(key) + " is a list");
    for (const YAML::Node& item : list) read(item);
  }
  // name: map lines.
  void each_named(const char* key,
                  const std::function<void(const std::string&, const YAML::Node&)>& read) {
    const YAML::Node map = take(key);
    if (!map) return;
    if (!map.IsMap()) fail(map, std::string(key) + " is a map of names");
    for (const auto& entry : map) read(entry.first.Scalar(), entry.second);
  }
  void nothing_else() const {
    for (const auto& entry : node_) {
      const std::string key = entry.first.Scalar();
      if (std::find(known_.begin(), known_.end(), key) == known_.end())
        fail(entry.first, unknown_name_message("key here", key, known_));
    }
  }
  [[noreturn]] void fail(const YAML::Node& at, const std::string& message) const {
    throw Error(ErrorCode::usage,
                source_ + ":" + std::to_string(at.Mark().line + 1) + ": " + message);
  }
  [[noreturn]] void fail(const std::string& message) const { fail(node_, message); }

 private:
  YAML::Node take(const char* key) {
    known_.emplace_back(key);
    return node_[key];
  }
  std::string scalar(const YAML::Node& node, const char* key) const {
    if (!node.IsScalar()) fail(node, std::string(key) + " is one value");
    return node.Scalar();
  }

  std::string source_;
  YAML::Node node_;
  std::vector<std::string> known_;
};

class TableReader {
 public:
  explicit TableReader(Table& table) : table_(table) {}

  void read(const std::string& source, const std::string& text) {
    source_ = source;
    try {
      read_root(YAML::Load(text));
    } catch (const YAML::Exception& error) {
      throw Error(ErrorCode::usage,
                  source + ":" + std::to_string(error.mark.line + 1) + ": not YAML: " + error.msg);
    }
  }

 private:
  void read_root(const YAML::Node& root) {
    Map map(source_, root, "a table");
    map.text("about", table_.about);
    map.text("source", table_.source);
    map.number("version", table_.version);
    map.number("tolerance", table_.tolerance);
    map.numbers("seeds", table_.seeds);
    map.each_named("data_sets", [&](const auto& name, const auto& node) { data_set(name, node); });
    map.each_named("networks", [&](const auto& name, const auto& node) { network(name, node); });
    std::string folder;
    map.text("rows_of", folder);
    if (!folder.empty()) rows_of_recipes(folder);
    map.each("rows", [&](const YAML::Node& node) { row(node); });
    map.nothing_else();
  }

  void data_set(const std::string& name, const YAML::Node& node) {
    Map map(source_, node, "a data set");
    TableDataSet data;
    map.text("about", data.about);
    map.text("from", data.from);
    map.number("images", data.images);
    map.nothing_else();
    table_.data_sets[name] = data;
  }

  void network(const std::string& name, const YAML::Node& node) {
    Map map(source_, node, "a network");
    TableNetwork network;
    map.text("about", network.about);
    map.text("data_set", network.data_set);
    map.text("arch", network.arch);
    map.text("preset", network.preset);
    map.number("top1", network.top1);
    map.each("files", [&](const YAML::Node& item) {
      Map file_map(source_, item, "a file");
      WeightsFile file;
      file_map.text("name", file.name);
      file_map.text("from", file.from);
      file_map.text("sha256", file.sha256);
      file_map.text("sha1", file.sha1);
      file_map.nothing_else();
      network.files.push_back(file);
    });
    map.nothing_else();
    if (!table_.data_sets.contains(network.data_set))
      map.fail(unknown_name_message("data set", network.data_set, names(table_.data_sets)));
    table_.networks[name] = network;
  }

  void row(const YAML::Node& node) {
    Map map(source_, node, "a row");
    TableRow row;
    std::string scheme;
    map.text("name", row.name);
    map.text("about", row.about);
    map.text("recipe", row.recipe);
    map.text("network", row.network);
    map.number("published", row.published);
    map.text("note", row.note);
    map.number("bank_images", row.bank_images);
    map.texts("settings", row.settings);
    map.nothing_else();
    if (row.name.empty() || row.recipe.empty()) map.fail("a row has a name and a recipe");
    if (!row.network.empty() && !table_.networks.contains(row.network))
      map.fail(unknown_name_message("network", row.network, names(table_.networks)));
    const auto same = [&](const TableRow& other) { return other.name == row.name; };
    if (std::any_of(table_.rows.begin(), table_.rows.end(), same))
      map.fail("the row '" + row.name + "' is there twice");
    try {
      load_recipe(row.recipe, row.settings);
    } catch (const Error& error) {
      map.fail("row '" + row.name + "': " + error.what());
    }
    table_.rows.push_back(row);
  }

  void rows_of_recipes(const std::string& folder) {
    for (const std::string& recipe : recipe_names())
      if (recipe.starts_with(folder + "/"))
        table_.rows.push_back({.name = recipe.substr(folder.size() + 1),
                               .about = load_recipe(recipe).about,
                               .recipe = recipe});
  }

  template <class Value>
  static std::vector<std::string> names(const std::map<std::string, Value>& map) {
    std::vector<std::string> names;
    for (const auto& [name, value] : map) names.push_back(name);
    return names;
  }

  Table& table_;
  std::string source_;
};

void read_folder(const fs::path& folder, Table& table) {
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".yaml")
      table.rows.push_back({.name = entry.path().stem().string(), .recipe = entry.path().string()});
  if (table.rows.empty())
    throw Error(ErrorCode::usage, "'" + folder.string() + "' holds no *.yaml, the rows of a table");
  std::sort(table.rows.begin(), table.rows.end(),
            [](const TableRow& a, const TableRow& b) { return a.name < b.name; });
}

}  // namespace

Table load_table(const std::string& name) {
  Table table;
  table.name = name;
  TableReader reader(table);
  reader.read("inputs.yaml", std::string(recipes::builtin_inputs()));
  for (const auto& [known, text] : recipes::builtin_tables())
    if (known == name) {
      reader.read(name, std::string(text));
      return table;
    }
  std::error_code unreachable;
  if (fs::is_directory(name, unreachable)) {
    read_folder(name, table);
  } else if (fs::is_regular_file(name, unreachable)) {
    table.name = fs::path(name).stem().string();
    const auto text = recipes::read_text(name);
    if (!text)
      throw Error(ErrorCode::usage,
                  "cannot read the table '" + name + "', or it is longer than 1 MiB");
    reader.read(name, *text);
  } else {
    throw Error(ErrorCode::usage, unknown_name_message("table, a *.yaml file or a folder of them",
                                                       name, table_names()));
  }
  return table;
}

std::vector<std::string> table_names() {
  std::vector<std::string> names;
  for (const auto& [name, text] : recipes::builtin_tables()) names.emplace_back(name);
  return names;
}

}  // namespace zsq
