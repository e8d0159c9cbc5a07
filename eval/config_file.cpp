// SPDX-License-Identifier: Apache-2.0
#include "eval/config_file.h"

#include "core/error.h"
#include "formats/json.h"

namespace zsq::eval {
namespace {

constexpr std::uintmax_t kMostBytes = 1 << 20;

std::string range(double least, double most) {
  return nlohmann::json(least).dump() + " to " + nlohmann::json(most).dump();
}

}  // namespace

ConfigFile::ConfigFile(const std::filesystem::path& path) : name_(path.string()) {
  std::error_code unreachable;
  if (!std::filesystem::is_regular_file(path, unreachable))
    refuse("no such file; expected a preset's name, a preprocessor_config.json or a config.json");
  if (std::filesystem::file_size(path) > kMostBytes)
    refuse("more than a megabyte; a configuration of preprocessing is a small JSON file");
  root_ = formats::read_json<Json>(path);
  if (!root_.is_object()) refuse("not a JSON object");
}

void ConfigFile::refuse(const std::string& message) const {
  throw Error(ErrorCode::bad_input, name_ + ": " + message);
}

void ConfigFile::refuse(const std::string& key, const std::string& expected) const {
  const Json* found = value(key);
  const std::string text = found ? found->dump().substr(0, 80) : "absent";
  refuse("'" + prefix_ + key + "' is " + text + ", expected " + expected);
}

const ConfigFile::Json* ConfigFile::value(const std::string& key) const {
  const auto found = root_.find(key);
  return found == root_.end() || found->is_null() ? nullptr : &*found;
}

std::optional<ConfigFile> ConfigFile::object(const std::string& key) const {
  const Json* found = value(key);
  if (!found || !found->is_object()) return std::nullopt;
  return ConfigFile(name_, prefix_ + key + ".", *found);
}

std::optional<bool> ConfigFile::boolean(const std::string& key) const {
  const Json* found = value(key);
  if (!found) return std::nullopt;
  if (!found->is_boolean()) refuse(key, "true or false");
  return found->get<bool>();
}

std::optional<std::int64_t> ConfigFile::integer(const std::string& key, std::int64_t least,
                                                std::int64_t most) const {
  const auto found = number(key, static_cast<double>(least), static_cast<double>(most));
  if (!found) return std::nullopt;
  const auto whole = static_cast<std::int64_t>(*found);
  if (static_cast<double>(whole) != *found) refuse(key, "a whole number");
  return whole;
}

std::optional<double> ConfigFile::number(const std::string& key, double least, double most) const {
  const Json* found = value(key);
  if (!found) return std::nullopt;
  if (!found->is_number() || found->get<double>() < least || found->get<double>() > most)
    refuse(key, "a number, " + range(least, most));
  return found->get<double>();
}

std::optional<std::string> ConfigFile::text(const std::string& key) const {
  const Json* found = value(key);
  if (!found) return std::nullopt;
  if (!found->is_string()) refuse(key, "a text");
  return found->get<std::string>();
}

std::optional<std::vector<double>> ConfigFile::numbers(const std::string& key, std::size_t count,
                                                       double least, double most) const {
  const Json* found = value(key);
  if (!found) return std::nullopt;
  const Json list = found->is_array() ? *found : Json::array({*found});
  bool fits = list.size() == 1 || list.size() == count;
  for (const Json& item : list)
    fits = fits && item.is_number() && item.get<double>() >= least && item.get<double>() <= most;
  if (!fits) refuse(key, "1 or " + std::to_string(count) + " numbers, " + range(least, most));
  return list.get<std::vector<double>>();
}

}  // namespace zsq::eval
