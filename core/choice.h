// SPDX-License-Identifier: Apache-2.0
// Words that a person chooses from: the names of an enumeration (core/settings.h).
#pragma once
#include <string>
#include <vector>

#include "core/enum_of.h"
#include "core/error.h"
#include "core/nearest_name.h"

namespace zsq {

template <class Enum>
std::vector<std::string> names_of() {
  return {EnumNames<Enum>::names.begin(), EnumNames<Enum>::names.end()};
}

// The value with this name. Error(usage): `where`, then that `name` is not a `kind`, the nearest
// name and all known ones.
template <class Enum>
Enum choice(std::string_view kind, std::string_view name, const std::string& where = "") {
  if (const auto known = enum_of<Enum>(name)) return *known;
  throw Error(ErrorCode::usage, where + unknown_name_message(kind, name, names_of<Enum>()));
}

}  // namespace zsq
