// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "core/enum_of.h"
#include "core/error.h"
#include "core/nearest_name.h"
#include "eval/preprocessing.h"
#include "formats/in_file.h"
#include "formats/json.h"

namespace zsq::eval {
namespace {

using Json = nlohmann::ordered_json;

// "data.size" is "size" in a record of preprocessing.
std::string member(const SettingInfo& info) { return std::string(info.key.substr(5)); }

Json json_of(const ImageSize& size) { return {size.height, size.width}; }
template <class T>
Json json_of(const T& value) {
  if constexpr (std::is_enum_v<T>)
    return enum_name(value);
  else
    return value;
}

struct Wrong {
  std::string expected;
};

void require(bool holds, const std::string& expected) {
  if (!holds) throw Wrong{expected};
}

double number(const Json& json, const SettingInfo& info) {
  require(json.is_number() && json.get<double>() >= info.min && json.get<double>() <= info.max,
          "a number in its range");
  return json.get<double>();
}

void read(const Json& json, const SettingInfo&, bool& value) {
  require(json.is_boolean(), "true or false");
  value = json;
}
void read(const Json& json, const SettingInfo& info, double& value) { value = number(json, info); }
void read(const Json& json, const SettingInfo& info, std::int64_t& value) {
  require(json.is_number_integer(), "a whole number");
  value = static_cast<std::int64_t>(number(json, info));
}
void read(const Json& json, const SettingInfo& info, ImageSize& value) {
  require(json.is_array() && json.size() == 2, "[height, width]");
  read(json[0], info, value.height);
  read(json[1], info, value.width);
}
void read(const Json& json, const SettingInfo& info, std::vector<double>& value) {
  require(json.is_array(), "a list of numbers");
  for (const Json& item : json) value.push_back(number(item, info));
}
template <class Enum>
requires std::is_enum_v<Enum>
void read(const Json& json, const SettingInfo&, Enum& value) {
  std::string names;
  for (const auto name : EnumNames<Enum>::names)
    names += (names.empty() ? "" : ", ") + std::string(name);
  const auto known = json.is_string() ? enum_of<Enum>(json.get<std::string>()) : std::nullopt;
  require(known.has_value(), "one of " + names);
  value = *known;
}

[[noreturn]] void refuse(const std::string& where, const std::string& message) {
  throw Error(ErrorCode::bad_input,
              where + ": " + message + "; give the preprocessing by --preset instead");
}

}  // namespace

std::string to_json(const PreprocessingOptions& options) {
  Json json = Json::object();
  visit_preprocessing_keys(
      [&](const SettingInfo& info, const auto& value) {
        if (value) json[member(info)] = json_of(*value);
      },
      options);
  return json.dump();
}

PreprocessingOptions from_json(const std::string& text, const std::string& where) {
  Json json = formats::in_file(where, [&] { return formats::parse_json<Json>(text); });
  if (!json.is_object()) refuse(where, "is no JSON object");
  PreprocessingOptions options;
  visit_preprocessing_keys(
      [&]<class T>(const SettingInfo& info, std::optional<T>& value) {
        const auto found = json.find(member(info));
        if (found == json.end()) return;
        try {
          read(*found, info, value.emplace());
        } catch (const Wrong& wrong) {
          refuse(where, "'" + member(info) + "' is " + found->dump().substr(0, 60) + ", expected " +
                            wrong.expected);
        }
        json.erase(found);
      },
      options);
  if (!json.empty()) refuse(where, "'" + json.begin().key() + "' is not a key of preprocessing");
  return options;
}

}  // namespace zsq::eval
