// SPDX-License-Identifier: Apache-2.0
// A JSON file of another tool, read key by key; an error names the file, the key, what was found
// and what was expected.
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace zsq::eval {

class ConfigFile {
 public:
  // Error(bad_input): no such file, no JSON object, more than a configuration can hold (1 MB).
  explicit ConfigFile(const std::filesystem::path& path);

  // The object under `key`, empty if there is none.
  std::optional<ConfigFile> object(const std::string& key) const;

  // null counts as not given.
  bool has(const std::string& key) const { return value(key) != nullptr; }
  std::optional<bool> boolean(const std::string& key) const;
  std::optional<std::int64_t> integer(const std::string& key, std::int64_t least,
                                      std::int64_t most) const;
  std::optional<double> number(const std::string& key, double least, double most) const;
  std::optional<std::string> text(const std::string& key) const;
  // One number or a list of 1 or `count` of them.
  std::optional<std::vector<double>> numbers(const std::string& key, std::size_t count,
                                             double least, double most) const;

  [[noreturn]] void refuse(const std::string& message) const;
  [[noreturn]] void refuse(const std::string& key, const std::string& expected) const;

 private:
  using Json = nlohmann::json;
  ConfigFile(std::string name, std::string prefix, Json root)
      : name_(std::move(name)), prefix_(std::move(prefix)), root_(std::move(root)) {}
  const Json* value(const std::string& key) const;

  std::string name_, prefix_;  // of the file; of the keys in messages
  Json root_;
};

}  // namespace zsq::eval
