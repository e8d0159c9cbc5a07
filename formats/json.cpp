// SPDX-License-Identifier: Apache-2.0
#include "formats/json.h"

#include <string>

#include "core/error.h"
#include "formats/limits.h"

namespace zsq::formats {

void require_shallow_json(std::string_view text) {
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxJsonDepth)
        throw Error(ErrorCode::bad_input,
                    "its JSON is nested deeper than " + std::to_string(kMaxJsonDepth) + " levels");
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
}

}  // namespace zsq::formats
