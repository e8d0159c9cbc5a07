// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace zsq::pipeline {

using Json = nlohmann::ordered_json;

// Names come from model files and need not be UTF-8: what is not is replaced. indent -1: one line.
inline std::string dump(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// Text that is JSON already; null if there is none.
inline Json json_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json::parse(text);
}

// An object with the bits as keys.
inline Json by_bits(const std::map<std::int64_t, double>& values) {
  Json json = Json::object();
  for (const auto& [bits, value] : values) json[std::to_string(bits)] = value;
  return json;
}

// Members of files that another version may have written: nothing if they are missing, null or of
// another type.
inline const Json& member(const Json& json, const std::string& key) {
  static const Json kNull;
  const auto found = json.find(key);
  return found == json.end() ? kNull : *found;
}
inline std::optional<double> number_in(const Json& json, const std::string& key) {
  const Json& value = member(json, key);
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}
inline std::string text_in(const Json& json, const std::string& key) {
  const Json& value = member(json, key);
  return value.is_string() ? value.get<std::string>() : "";
}
inline const Json& list_in(const Json& json, const std::string& key) {
  static const Json kEmpty = Json::array();
  const Json& value = member(json, key);
  return value.is_array() ? value : kEmpty;
}

}  // namespace zsq::pipeline
