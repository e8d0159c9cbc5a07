// SPDX-License-Identifier: Apache-2.0
#include "recipes/values.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace zsq::recipes {
namespace {

[[noreturn]] void wrong_type(const std::string& text, const char* expected) {
  throw Error(ErrorCode::usage, "'" + text + "' is not " + expected);
}

template <class T>
bool parse_whole(const std::string& text, T& value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end;
}

}  // namespace

std::int64_t parse_integer(const std::string& text) {
  std::int64_t value = 0;
  if (!parse_whole(text, value)) wrong_type(text, "a whole number");
  return value;
}

double parse_number(const std::string& text) {
  double value = 0;
  if (!parse_whole(text, value) || !std::isfinite(value)) wrong_type(text, "a number");
  return value;
}

bool parse_boolean(const std::string& text) {
  if (text == "true") return true;
  if (text == "false") return false;
  wrong_type(text, "true or false");
}

Duration parse_duration(const std::string& text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789.e+-"), text.size());
  const std::string unit = text.substr(digits);
  double value = 0;
  double factor = 0;
  if (unit.empty() || unit == "s") factor = 1;
  if (unit == "min" || unit == "m") factor = 60;
  if (unit == "h") factor = 3600;
  if (factor == 0 || !parse_whole(text.substr(0, digits), value) || !std::isfinite(value))
    wrong_type(text, "a duration like 600, 600s, 10min or 2h");
  return {value * factor};
}

Budget parse_budget(const std::string& text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789.e+-"), text.size());
  std::string unit = text.substr(digits);
  Budget budget;
  budget.percent = unit == "%";
  if (!budget.percent && unit.ends_with('B')) unit.pop_back();
  double factor = 0;
  if (unit.empty() || budget.percent) factor = 1;
  if (unit == "k") factor = 1e3;
  if (unit == "M") factor = 1e6;
  if (unit == "G") factor = 1e9;
  if (unit == "T") factor = 1e12;
  if (factor == 0 || !parse_whole(text.substr(0, digits), budget.amount) ||
      !std::isfinite(budget.amount))
    wrong_type(text, "an amount like 120kB, 0.6MB, 1.2G or 50%");
  budget.amount *= factor;
  return budget;
}

std::vector<std::string> items_of(const RawValue& raw) {
  if (raw.is_list) return raw.items;
  std::string text = raw.items.at(0);
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']')
    text = text.substr(1, text.size() - 2);
  std::vector<std::string> items;
  std::istringstream stream(text);
  for (std::string item; std::getline(stream, item, ',');) {
    const std::size_t begin = std::min(item.find_first_not_of(' '), item.size());
    items.push_back(item.substr(begin, item.find_last_not_of(' ') + 1 - begin));
  }
  return items;
}

void parse_value(const RawValue& raw, std::vector<double>& value) {
  std::vector<double> parsed;
  for (const std::string& item : items_of(raw)) parsed.push_back(parse_number(item));
  value = std::move(parsed);
}

void parse_value(const RawValue& raw, ImageSize& value) {
  RawValue sides = raw;
  if (!raw.is_list) std::replace(sides.items.at(0).begin(), sides.items.at(0).end(), 'x', ',');
  const std::vector<std::string> items = items_of(sides);
  const std::string text = raw.items.empty() ? "" : raw.items.front();
  if (items.empty() || items.size() > 2 || text.ends_with('x') || text.ends_with(','))
    wrong_type(text, "a size like 224 or 240x320");
  value = {parse_integer(items.front()), parse_integer(items.back())};
}

void parse_value(const RawValue& raw, std::vector<LayerBits>& value) {
  std::vector<LayerBits> parsed;
  for (const std::string& item : items_of(raw)) {
    const std::size_t equals = item.rfind('=');
    if (equals == std::string::npos) wrong_type(item, "of the form layer=bits");
    parsed.push_back({item.substr(0, equals), parse_integer(item.substr(equals + 1))});
  }
  value = std::move(parsed);
}

void parse_value(const RawValue& raw, std::vector<LossWeight>& value) {
  std::vector<LossWeight> parsed;
  for (const std::string& item : items_of(raw)) {
    const std::size_t equals = item.find('=');
    LossWeight term;
    parse_scalar(item.substr(0, equals), term.term);
    if (equals != std::string::npos) term.weight = parse_number(item.substr(equals + 1));
    parsed.push_back(term);
  }
  value = std::move(parsed);
}

void parse_value(const RawValue& raw, std::vector<NamedMeaning>& value) {
  std::vector<NamedMeaning> parsed;
  for (const std::string& item : items_of(raw)) {
    if (item == kAuto) continue;
    const std::size_t equals = item.rfind('=');
    NamedMeaning& one = parsed.emplace_back();
    if (equals != std::string::npos) one.output = item.substr(0, equals);
    parse_scalar(item.substr(equals + 1), one.meaning);
  }
  value = std::move(parsed);
}

std::string format_number(double value) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}

std::string format_string(const std::string& value) {
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') text += '\\';
    if (c == '\n')
      text += "\\n";
    else if (c == '\t')
      text += "\\t";
    else
      text += c;
  }
  return text + "\"";
}

std::string format_value(const std::vector<double>& value) {
  std::string text = "[";
  for (std::size_t i = 0; i < value.size(); ++i) text += (i ? ", " : "") + format_number(value[i]);
  return text + "]";
}

std::string format_value(const std::vector<LayerBits>& value) {
  std::string text = "[";
  for (std::size_t i = 0; i < value.size(); ++i)
    text += (i ? ", " : "") + format_string(value[i].layer + "=" + std::to_string(value[i].bits));
  return text + "]";
}

std::string format_value(const std::vector<LossWeight>& value) {
  std::string text = "[";
  for (const auto& [term, weight] : value)
    text += (text == "[" ? "" : ", ") + format_value(term) + "=" + format_number(weight);
  return text + "]";
}

std::string format_value(const ImageSize& value) {
  return std::to_string(value.height) + "x" + std::to_string(value.width);
}

std::string format_value(const std::vector<NamedMeaning>& value) {
  if (value.empty()) return kAuto;
  if (value.size() == 1 && value[0].output.empty()) return format_value(value[0].meaning);
  std::string text = "[";
  for (const auto& [output, meaning] : value)
    text += (text == "[" ? "" : ", ") + format_string(output.empty()
                                                          ? format_value(meaning)
                                                          : output + "=" + format_value(meaning));
  return text + "]";
}

std::string range_text(const SettingInfo& info) {
  std::string text;
  if (std::isfinite(info.min) && std::isfinite(info.max))
    text = format_number(info.min) + ".." + format_number(info.max);
  if (!info.unit.empty()) text += (text.empty() ? "" : " ") + std::string(info.unit);
  return text;
}

void check_number(const SettingInfo& info, double value) {
  if (value >= info.min && value <= info.max) return;
  throw Error(ErrorCode::usage,
              format_number(value) + " is outside its range, " + range_text(info));
}

}  // namespace zsq::recipes
