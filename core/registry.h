// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <iterator>
#include <string>

#include "core/error.h"
#include "core/settings.h"

namespace zsq {

// The row of a registry whose `name` is this value of an enumeration. Error(internal), which names
// `file`, the file that holds the registry, if it has none.
template <class Rows, class Enum>
const auto& row_of(const Rows& rows, Enum name, const char* file) {
  const auto found = std::find_if(std::begin(rows), std::end(rows),
                                  [&](const auto& row) { return row.name == name; });
  if (found == std::end(rows))
    throw Error(ErrorCode::internal,
                std::string(file) + " has no row for " + std::string(enum_name(name)));
  return *found;
}

}  // namespace zsq
