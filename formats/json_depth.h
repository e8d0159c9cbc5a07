// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

namespace zsq::formats {

// Error(bad_input) if arrays and objects are nested deeper than kMaxJsonDepth: the parser would
// take it, but to copy, print or walk the document would use up the stack. Says nothing of the
// rest of the syntax.
void require_shallow_json(std::string_view text);

}  // namespace zsq::formats
