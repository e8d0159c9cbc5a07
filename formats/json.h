// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>

#include "formats/atomic_file.h"
#include "formats/in_file.h"

namespace zsq::formats {

// Error(bad_input) if arrays and objects are nested deeper than kMaxJsonDepth: the parser would
// take it, but to copy, print or walk the document would use up the stack. Says nothing of the
// rest of the syntax.
void require_shallow_json(std::string_view text);

// Whether a value is a floating-point number or a list with one. Asked before get<integer>(), which
// would cast such a number: undefined beyond the range of the integer, and 1.5 would pass as 1.
template <class Json>
bool holds_floats(const Json& value) {
  const auto is_float = [](const Json& item) { return item.is_number_float(); };
  return is_float(value) || (value.is_array() && std::any_of(value.begin(), value.end(), is_float));
}

// A document of nlohmann's; discarded if the text is not JSON. Error(bad_input) as above.
template <class Json>
Json parse_json(const std::string& text) {
  require_shallow_json(text);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

// The same of a whole file.
template <class Json>
Json read_json(const std::filesystem::path& path) {
  const std::string text = read_text(path);
  return in_file(path, [&] { return parse_json<Json>(text); });
}

}  // namespace zsq::formats
