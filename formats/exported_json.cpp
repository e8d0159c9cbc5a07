// SPDX-License-Identifier: Apache-2.0
#include "formats/exported_json.h"

#include <limits>

#include "core/error.h"

namespace zsq::formats::exported {

using nlohmann::json;
using Argument = ExportedProgram::Argument;
using ArgumentKind = Argument::Kind;

void fail(const std::string& what) { throw Error(ErrorCode::bad_input, what); }

const json& member(const json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  if (!object.is_object() || found == object.end())
    fail("its JSON lacks '" + std::string(name) + "'; the file is damaged");
  return *found;
}

std::string text_of(const json& object, const char* name) {
  const auto& value = member(object, name);
  if (!value.is_string()) fail("its JSON holds no text under '" + std::string(name) + "'");
  return value.get<std::string>();
}

const json& list_of(const json& object, const char* name) {
  const auto& value = member(object, name);
  if (!value.is_array()) fail("its JSON holds no list under '" + std::string(name) + "'");
  return value;
}

Choice choice(const json& object) {
  if (!object.is_object() || object.size() != 1) fail("its JSON holds no union of one member");
  return {object.begin().key(), object.begin().value()};
}

std::int64_t size_of_dimension(const json& dimension) {
  const auto [name, value] = choice(dimension);
  return name == "as_int" && value.is_number_integer() ? value.get<std::int64_t>() : -1;
}

namespace {

double number_of(const json& value) {
  if (value.is_number()) return value.get<double>();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (value == "Infinity") return kInfinity;
  if (value == "-Infinity") return -kInfinity;
  fail("its JSON holds no number where one was expected");
}

Argument list_argument(const json& items, const char* of, int depth) {
  Argument made{{}, ArgumentKind::list, 0, 0, {}, {}};
  if (!items.is_array()) fail("its JSON holds no list of arguments");
  for (const auto& item : items) {
    // Symbolic sizes, and tensors that may be absent, are unions of their own; a tensor is
    // {"name": ...}; other items stand for themselves.
    const bool is_union = item.is_object() && item.size() == 1 && !item.contains("name");
    made.items.push_back(argument_of(is_union ? item : json{{of, item}}, depth + 1));
  }
  return made;
}

bool read_scalar(const std::string& kind, const json& value, int depth, Argument& made) {
  const bool size = kind == "as_sym_int" || kind == "as_sym_bool" || kind == "as_sym_float";
  if (kind == "as_none") {
    made.kind = ArgumentKind::none;
  } else if (kind == "as_bool" && value.is_boolean()) {
    made.kind = ArgumentKind::boolean;
    made.integer = value.get<bool>();
  } else if (kind == "as_int" && value.is_number_integer()) {
    made.kind = ArgumentKind::integer;
    made.integer = value.get<std::int64_t>();
  } else if (kind == "as_float") {
    made.kind = ArgumentKind::real;
    made.real = number_of(value);
  } else if (kind == "as_string" && value.is_string()) {
    made.kind = ArgumentKind::text;
    made.text = value.get<std::string>();
  } else if (kind == "as_tensor") {
    made.kind = ArgumentKind::tensor;
    made.text = text_of(value, "name");
  } else if (kind == "as_name" && value.is_string()) {
    made.kind = ArgumentKind::symbol;
    made.text = value.get<std::string>();
  } else if (kind == "as_scalar_type" && value.is_number_integer()) {
    constexpr std::int64_t kFloats[][2] = {{6, 5}, {7, 6}, {8, 7}, {13, 15}}, kLong = 4;
    made = {{}, ArgumentKind::dtype, kLong, 0, {}, {}};
    for (const auto& [in_file, type] : kFloats)
      if (value == in_file) made.integer = type;
  } else if (size) {
    made = argument_of(value, depth + 1);
  } else {
    return false;
  }
  return true;
}

}  // namespace

Argument argument_of(const json& given, int depth) {
  if (depth > 10) fail("its arguments are nested too deeply");
  const auto [kind, value] = choice(given);
  Argument made;
  if (read_scalar(kind, value, depth, made)) return made;
  if (kind == "as_ints" || kind == "as_sym_ints") return list_argument(value, "as_int", depth);
  if (kind == "as_floats") return list_argument(value, "as_float", depth);
  if (kind == "as_bools") return list_argument(value, "as_bool", depth);
  if (kind == "as_tensors" || kind == "as_optional_tensors")
    return list_argument(value, "as_tensor", depth);
  made.kind = ArgumentKind::other;
  made.text = kind;
  return made;
}

}  // namespace zsq::formats::exported
