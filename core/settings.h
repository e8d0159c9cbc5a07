// SPDX-License-Identifier: Apache-2.0
// A setting is declared once. An options struct has a function
//   template <class Visitor> void visit_settings(Visitor&& visit, TrainOptions& options) {
//     visit(SettingInfo{"finetune.batch_size", "images per step", "images", 1, 1e6, "Qimera 4.1"},
//           options.batch_size);
//   }
// and the recipe key, --set, --help and the resolved recipe all come from it. Enumerations take
// part by specialising EnumNames with their names in order of value, which starts at 0.
#pragma once
#include <array>
#include <limits>
#include <string_view>

namespace zsq {

struct SettingInfo {
  std::string_view key;   // dotted recipe key
  std::string_view help;  // one line
  std::string_view unit = "";
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  std::string_view source = "";  // paper and section where it comes from one
};

template <class Enum>
struct EnumNames;  // static constexpr std::array<std::string_view, n> names;

template <class Enum>
constexpr std::string_view enum_name(Enum value) {
  return EnumNames<Enum>::names[static_cast<std::size_t>(value)];
}

}  // namespace zsq
