// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "core/settings.h"

namespace zsq {

// The value with this name; enum_name() is the inverse.
template <class Enum>
constexpr std::optional<Enum> enum_of(std::string_view name) {
  for (std::size_t i = 0; i < EnumNames<Enum>::names.size(); ++i)
    if (EnumNames<Enum>::names[i] == name) return static_cast<Enum>(i);
  return std::nullopt;
}

}  // namespace zsq
