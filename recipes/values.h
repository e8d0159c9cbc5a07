// SPDX-License-Identifier: Apache-2.0
// Text <-> value for every type that a setting may have. A message from here is the middle of a
// sentence: the caller puts the key and its place in front.
#pragma once
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "core/choice.h"
#include "eval/options.h"
#include "losses/options.h"
#include "quant/mixed_options.h"
#include "quant/options.h"
#include "recipes/options.h"

namespace zsq::recipes {

// A value as written: one scalar, or a list of them.
struct RawValue {
  std::vector<std::string> items;
  bool is_list = false;
};

// A setting whose value follows from others.
inline constexpr const char* kAuto = "auto";

std::int64_t parse_integer(const std::string& text);
double parse_number(const std::string& text);
bool parse_boolean(const std::string& text);
Duration parse_duration(const std::string& text);
Budget parse_budget(const std::string& text);

// Shortest text that reads back to the same number.
std::string format_number(double value);
std::string format_string(const std::string& value);  // double-quoted YAML
std::string range_text(const SettingInfo& info);      // "2..8 bits"; empty if there is none

inline void parse_scalar(const std::string& text, std::int64_t& value) {
  value = parse_integer(text);
}
inline void parse_scalar(const std::string& text, double& value) { value = parse_number(text); }
inline void parse_scalar(const std::string& text, bool& value) { value = parse_boolean(text); }
inline void parse_scalar(const std::string& text, std::string& value) { value = text; }
inline void parse_scalar(const std::string& text, Duration& value) { value = parse_duration(text); }
inline void parse_scalar(const std::string& text, Budget& value) { value = parse_budget(text); }
template <class Enum>
requires std::is_enum_v<Enum>
void parse_scalar(const std::string& text, Enum& value) {
  value = choice<Enum>("choice here", text);
}

template <class T>
void parse_value(const RawValue& raw, T& value) {
  if (raw.is_list) throw Error(ErrorCode::usage, "a list was given; one value is expected");
  parse_scalar(raw.items.at(0), value);
}
// A list, or one scalar with commas: [0.25, 0.5] in a file, 0.25,0.5 on a command line.
void parse_value(const RawValue& raw, std::vector<double>& value);
std::vector<std::string> items_of(const RawValue& raw);
template <class Enum>
requires std::is_enum_v<Enum>
void parse_value(const RawValue& raw, std::vector<Enum>& value) {
  value.clear();
  for (const std::string& item : items_of(raw)) parse_scalar(item, value.emplace_back());
}
void parse_value(const RawValue& raw, std::vector<LayerBits>& value);
void parse_value(const RawValue& raw, std::vector<LossWeight>& value);
// 240, 240x320 or [240, 320]: height, then width.
void parse_value(const RawValue& raw, ImageSize& value);
// auto, values, or [boxes=values, classes=scores]
void parse_value(const RawValue& raw, std::vector<NamedMeaning>& value);
// auto, or what the type itself takes.
template <class T>
void parse_value(const RawValue& raw, std::optional<T>& value) {
  value.reset();
  if (raw.items == std::vector<std::string>{kAuto} && !raw.is_list) return;
  T given{};
  parse_value(raw, given);
  value = std::move(given);
}

inline std::string format_value(std::int64_t value) { return std::to_string(value); }
inline std::string format_value(double value) { return format_number(value); }
inline std::string format_value(bool value) { return value ? "true" : "false"; }
inline std::string format_value(const std::string& value) { return format_string(value); }
inline std::string format_value(Duration value) { return format_number(value.seconds); }
inline std::string format_value(Budget value) {
  return format_number(value.amount) + (value.percent ? "%" : "");
}
template <class Enum>
requires std::is_enum_v<Enum> std::string format_value(Enum value) {
  return std::string(enum_name(value));
}
std::string format_value(const std::vector<double>& value);
template <class Enum>
requires std::is_enum_v<Enum> std::string format_value(const std::vector<Enum>& value) {
  std::string text = "[";
  for (const Enum item : value) text += (text == "[" ? "" : ", ") + format_value(item);
  return text + "]";
}
std::string format_value(const std::vector<LayerBits>& value);
std::string format_value(const std::vector<LossWeight>& value);
std::string format_value(const ImageSize& value);
std::string format_value(const std::vector<NamedMeaning>& value);
template <class T>
std::string format_value(const std::optional<T>& value) {
  return value ? format_value(*value) : kAuto;
}

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

// Throws where a number lies outside the range of its setting.
void check_number(const SettingInfo& info, double value);
template <class T>
void check_range(const SettingInfo& info, const T& value) {
  if constexpr (is_optional<T>) {
    if (value) check_range(info, *value);
  } else if constexpr (std::is_same_v<T, ImageSize>) {
    check_number(info, static_cast<double>(value.height));
    check_number(info, static_cast<double>(value.width));
  } else if constexpr (std::is_same_v<T, Duration>) {
    check_number(info, value.seconds);
  } else if constexpr (std::is_same_v<T, std::vector<double>>) {
    for (const double x : value) check_number(info, x);
  } else if constexpr (std::is_same_v<T, Budget>) {
    check_number(info, value.amount);
  } else if constexpr (std::is_same_v<T, std::vector<LayerBits>>) {
    for (const LayerBits& layer : value) check_number(info, static_cast<double>(layer.bits));
  } else if constexpr (std::is_same_v<T, std::vector<LossWeight>>) {
    for (const LossWeight& term : value) check_number(info, term.weight);
  } else if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
    check_number(info, static_cast<double>(value));
  }
}

// What may be written for a setting of type T: "2..8 bits", "true|false", "paper|deploy".
template <class T>
std::string choices(const SettingInfo& info) {
  if constexpr (std::is_same_v<T, std::vector<LossWeight>>) {
    return choices<LossTerm>(info);
  } else if constexpr (std::is_same_v<T, std::vector<LevelTable>>) {
    return choices<LevelTable>(info);
  } else if constexpr (is_optional<T>) {
    const std::string known = choices<typename T::value_type>(info);
    return std::string(kAuto) + (known.empty() ? "" : "|") + known;
  } else if constexpr (std::is_enum_v<T>) {
    std::string text;
    for (const std::string& name : names_of<T>()) text += (text.empty() ? "" : "|") + name;
    return text;
  } else if constexpr (std::is_same_v<T, bool>) {
    return "true|false";
  } else {
    return range_text(info);
  }
}

}  // namespace zsq::recipes
