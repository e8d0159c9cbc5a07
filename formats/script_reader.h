// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "formats/script_syntax.h"
#include "formats/script_tokens.h"

namespace zsq::formats {

// The tokens of a script, one after the other, and the expressions among them.
class ScriptReader {
 public:
  explicit ScriptReader(std::string_view source) : tokens_(tokenize_script(source)) {}

  const ScriptToken& now() const { return tokens_[at_]; }
  void advance() { ++at_; }
  bool here(ScriptToken::Kind kind) const { return now().kind == kind; }
  bool here(std::string_view mark) const { return now().is(ScriptToken::Kind::punctuation, mark); }
  bool take(std::string_view mark);  // false: not here, nothing is taken
  bool take_word(std::string_view word);
  // Error(bad_input) names the line, what was expected and what was found.
  void need(std::string_view mark);
  void need(ScriptToken::Kind kind, const char* what);
  std::string need_name();
  [[noreturn]] void fail(const std::string& expected) const;

  Expression expression();
  Expression expressions();  // without brackets, commas make a tuple

 private:
  Expression node(Expression::Kind kind) const;
  Expression call(Expression callee);
  Expression subscript(Expression object);
  Expression sequence(Expression::Kind kind, std::string_view close);
  Expression atom();
  Expression brackets();
  Expression number(bool negative);

  std::vector<ScriptToken> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace zsq::formats
