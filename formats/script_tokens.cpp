// SPDX-License-Identifier: Apache-2.0
#include "formats/script_tokens.h"

#include "core/error.h"
#include "formats/limits.h"

namespace zsq::formats {
namespace {

using TokenKind = ScriptToken::Kind;

// Independent of the locale, unlike <cctype>.
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80) != 0;
}

class Tokenizer {
 public:
  explicit Tokenizer(std::string_view source) : source_(source) {}

  std::vector<ScriptToken> run() {
    while (at_ < source_.size()) {
      if (line_starts_ && brackets_ == 0) {
        indentation();
      } else {
        token();
      }
    }
    if (brackets_ != 0) fail("a bracket is never closed");
    if (!line_starts_) add(TokenKind::newline, 0);
    for (; indents_.size() > 1; indents_.pop_back()) add(TokenKind::dedent, 0);
    add(TokenKind::end, 0);
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::bad_input, "line " + std::to_string(line_) + ": " + what);
  }

  char look(std::size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }

  void add(TokenKind kind, std::size_t length) {
    tokens_.push_back({kind, source_.substr(at_, length), line_});
    at_ += length;
  }

  void skip_comment() {
    while (at_ < source_.size() && look() != '\n') ++at_;
  }

  // Blank lines and comments have no indentation of their own.
  void indentation() {
    std::size_t spaces = 0;
    for (; look() == ' '; ++at_) ++spaces;
    if (look() == '#') skip_comment();
    if (look() == '\n' || look() == '\r') {
      line_ += look() == '\n';
      ++at_;
      return;
    }
    if (at_ >= source_.size()) return;
    line_starts_ = false;
    if (spaces > indents_.back()) {
      if (indents_.size() > kMaxScriptBlocks) fail("its blocks are nested too deeply");
      indents_.push_back(spaces);
      add(TokenKind::indent, 0);
      return;
    }
    for (; spaces < indents_.back(); indents_.pop_back()) add(TokenKind::dedent, 0);
    if (spaces != indents_.back()) fail("its indentation fits no block");
  }

  void token() {
    const char c = look();
    if (c == '\n') {
      if (brackets_ == 0) {
        add(TokenKind::newline, 0);
        line_starts_ = true;
      }
      ++line_;
      ++at_;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else if (c == '#') {
      skip_comment();
    } else if (is_letter(c)) {
      std::size_t length = 1;
      while (is_letter(look(length)) || is_digit(look(length))) ++length;
      add(TokenKind::name, length);
    } else if (is_digit(c) || (c == '.' && is_digit(look(1)))) {
      number();
    } else if (c == '"' || c == '\'') {
      text(c);
    } else {
      punctuation(c);
    }
  }

  void number() {
    std::size_t length = 0;
    const auto digits = [&] {
      while (is_digit(look(length))) ++length;
    };
    digits();
    if (look(length) == '.') {
      ++length;
      digits();
    }
    if (look(length) == 'e' || look(length) == 'E') {
      const bool sign = look(length + 1) == '-' || look(length + 1) == '+';
      length += sign ? 2 : 1;
      digits();
    }
    add(TokenKind::number, length);
  }

  void text(char quote) {
    std::size_t length = 1;
    for (; look(length) != quote; ++length) {
      if (look(length) == '\n' || at_ + length >= source_.size()) fail("a string is never closed");
      length += look(length) == '\\';
    }
    if (at_ + length >= source_.size()) fail("a string is never closed");
    tokens_.push_back({TokenKind::text, source_.substr(at_ + 1, length - 1), line_});
    at_ += length + 1;
  }

  void punctuation(char c) {
    constexpr std::string_view kKnown = "()[]{},:.=-+*/%<>!&|~@;";
    if (kKnown.find(c) == std::string_view::npos) {
      fail("character " + std::to_string(static_cast<unsigned char>(c)) + " was not expected");
    }
    if (c == '(' || c == '[' || c == '{') ++brackets_;
    if (c == ')' || c == ']' || c == '}') --brackets_;
    if (brackets_ < 0) fail("a bracket is closed that was never opened");
    add(TokenKind::punctuation, c == '-' && look(1) == '>' ? 2 : 1);
  }

  std::string_view source_;
  std::vector<ScriptToken> tokens_;
  std::vector<std::size_t> indents_{0};
  std::size_t at_ = 0;
  int line_ = 1, brackets_ = 0;
  bool line_starts_ = true;
};

}  // namespace

std::vector<ScriptToken> tokenize_script(std::string_view source) {
  return Tokenizer(source).run();
}

}  // namespace zsq::formats
