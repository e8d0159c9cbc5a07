// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace zsq::formats {

struct ScriptToken {
  enum class Kind { name, number, text, punctuation, newline, indent, dedent, end };
  Kind kind = Kind::end;
  std::string_view text;  // of a string: without the quotes, escapes as they are
  int line = 0;

  bool is(Kind wanted, std::string_view spelling) const {
    return kind == wanted && text == spelling;
  }
};

// As Python's tokenizer: indentation becomes tokens, and inside brackets lines are joined.
// Error(bad_input) names the line. The tokens point into `source`.
std::vector<ScriptToken> tokenize_script(std::string_view source);

}  // namespace zsq::formats
