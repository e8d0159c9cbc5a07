// SPDX-License-Identifier: Apache-2.0
#include "formats/script_reader.h"

#include <charconv>

#include "core/error.h"
#include "formats/limits.h"

namespace zsq::formats {
namespace {

using TokenKind = ScriptToken::Kind;

void set_name(Expression& made, std::string_view word) {
  made.text = word;
  if (word == "None") made.kind = Expression::Kind::none;
  if (word == "True" || word == "False") {
    made.kind = Expression::Kind::boolean;
    made.integer = word == "True";
  }
}

}  // namespace

void ScriptReader::fail(const std::string& expected) const {
  const auto found = here(TokenKind::newline) ? "the end of the line"
                     : here(TokenKind::end)   ? "the end of the file"
                                              : "'" + std::string(now().text.substr(0, 80)) + "'";
  throw Error(ErrorCode::bad_input, "line " + std::to_string(now().line) + ": " + expected +
                                        " was expected, but " + found + " was found");
}

bool ScriptReader::take(std::string_view mark) {
  const bool there = here(mark);
  at_ += there;
  return there;
}

bool ScriptReader::take_word(std::string_view word) {
  const bool there = now().is(TokenKind::name, word);
  at_ += there;
  return there;
}

void ScriptReader::need(std::string_view mark) {
  if (!take(mark)) fail("'" + std::string(mark) + "'");
}

void ScriptReader::need(TokenKind kind, const char* what) {
  if (!here(kind)) fail(what);
  ++at_;
}

std::string ScriptReader::need_name() {
  if (!here(TokenKind::name)) fail("a name");
  return std::string(tokens_[at_++].text);
}

Expression ScriptReader::expressions() {
  auto first = expression();
  if (!here(",")) return first;
  Expression tuple = node(Expression::Kind::tuple);
  tuple.items.push_back(std::move(first));
  while (take(",")) {
    if (here("=") || here(TokenKind::newline)) break;
    tuple.items.push_back(expression());
  }
  return tuple;
}

Expression ScriptReader::node(Expression::Kind kind) const {
  Expression made;
  made.kind = kind;
  made.line = now().line;
  return made;
}

Expression ScriptReader::expression() {
  if (++depth_ > kMaxScriptDepth) fail("a shallower expression");
  auto made = atom();
  for (int chain = 0; here(".") || here("[") || here("("); ++chain) {
    if (chain > kMaxScriptChain) fail("a shorter chain of calls and attributes");
    if (take(".")) {
      auto outer = node(Expression::Kind::attribute);
      outer.text = need_name();
      outer.items.push_back(std::move(made));
      made = std::move(outer);
    } else if (take("[")) {
      made = subscript(std::move(made));
    } else {
      need("(");
      made = call(std::move(made));
    }
  }
  --depth_;
  return made;
}

Expression ScriptReader::call(Expression callee) {
  auto made = node(Expression::Kind::call);
  made.items.push_back(std::move(callee));
  while (!take(")")) {
    const bool keyword = here(TokenKind::name) && tokens_[at_ + 1].is(TokenKind::punctuation, "=");
    made.keywords.push_back(keyword ? need_name() : "");
    if (keyword) need("=");
    made.items.push_back(expression());
    if (!here(")")) need(",");
  }
  return made;
}

// Types have several indices, as Dict[str, int].
Expression ScriptReader::subscript(Expression object) {
  auto made = node(Expression::Kind::subscript);
  auto index = sequence(Expression::Kind::tuple, "]");
  made.items.push_back(std::move(object));
  made.items.push_back(index.items.size() == 1 ? Expression(index.items[0]) : std::move(index));
  return made;
}

Expression ScriptReader::sequence(Expression::Kind kind, std::string_view close) {
  auto made = node(kind);
  while (!take(close)) {
    made.items.push_back(expression());
    if (!here(close)) need(",");
  }
  return made;
}

Expression ScriptReader::atom() {
  auto made = node(Expression::Kind::name);
  const auto token = now();
  if (take("[")) return sequence(Expression::Kind::list, "]");
  if (take("(")) return brackets();
  const bool negative = take("-");
  if (here(TokenKind::number)) return number(negative);
  if (negative) fail("a number");
  if (here(TokenKind::text)) {
    made.kind = Expression::Kind::text;
    made.text = token.text;
  } else if (here(TokenKind::name)) {
    set_name(made, token.text);
  } else {
    fail("an expression");
  }
  ++at_;
  return made;
}

// (x) is x; a comma makes a tuple of it.
Expression ScriptReader::brackets() {
  auto made = node(Expression::Kind::tuple);
  bool comma = false;
  while (!take(")")) {
    made.items.push_back(expression());
    if (here(")")) continue;
    need(",");
    comma = true;
  }
  if (made.items.size() != 1 || comma) return made;
  auto only = std::move(made.items[0]);
  return only;
}

Expression ScriptReader::number(bool negative) {
  auto made = node(Expression::Kind::integer);
  const auto text = now().text;
  const auto* end = text.data() + text.size();
  auto read = std::from_chars(text.data(), end, made.integer);
  if (read.ec != std::errc{} || read.ptr != end) {
    made.kind = Expression::Kind::real;
    read = std::from_chars(text.data(), end, made.real);
  }
  if (read.ec != std::errc{} || read.ptr != end) fail("a number of 64 bits");
  if (negative) {
    made.integer = -made.integer;
    made.real = -made.real;
  }
  ++at_;
  return made;
}

}  // namespace zsq::formats
