// SPDX-License-Identifier: Apache-2.0
// The JSON of exported programs: access that checks, and the arguments of a node. For
// exported_program.cpp.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "formats/exported_program.h"

namespace zsq::formats::exported {

[[noreturn]] void fail(const std::string& what);  // Error(bad_input)

const nlohmann::json& member(const nlohmann::json& object, const char* name);
std::string text_of(const nlohmann::json& object, const char* name);
const nlohmann::json& list_of(const nlohmann::json& object, const char* name);

// Of a union, which the schema writes as an object with one member: its name and value.
struct Choice {
  std::string name;
  const nlohmann::json& value;
};
Choice choice(const nlohmann::json& object);

// {"as_int": 3}; -1 for a symbol.
std::int64_t size_of_dimension(const nlohmann::json& dimension);

ExportedProgram::Argument argument_of(const nlohmann::json& given, int depth = 0);

}  // namespace zsq::formats::exported
