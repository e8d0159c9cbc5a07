// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"
#include "formats/script_reader.h"

namespace zsq::formats {
namespace {

using TokenKind = ScriptToken::Kind;

class Parser : private ScriptReader {
 public:
  using ScriptReader::ScriptReader;

  ScriptFile run() {
    while (!here(TokenKind::end)) {
      if (take_word("class")) {
        klass();
      } else if (take_word("def")) {
        function("");
      } else if (here(TokenKind::newline)) {
        advance();
      } else {
        skip_line();  // imports and constants of the file
      }
    }
    return std::move(file_);
  }

 private:
  void skip_line() {
    while (!here(TokenKind::newline) && !here(TokenKind::end)) advance();
    if (here(TokenKind::newline)) advance();
  }

  // class Name(Module): attributes, which are skipped, and methods.
  void klass() {
    const auto name = need_name();
    while (!here(TokenKind::newline) && !here(TokenKind::end)) advance();
    need(TokenKind::newline, "the end of the line");
    need(TokenKind::indent, "an indented block");
    while (!here(TokenKind::dedent) && !here(TokenKind::end)) {
      if (take_word("def")) {
        function(name + ".");
      } else {
        skip_line();
      }
    }
    if (here(TokenKind::dedent)) advance();
  }

  void function(const std::string& prefix) {
    ScriptFunction made;
    made.line = now().line;
    const auto name = prefix + need_name();
    need("(");
    while (!take(")")) {
      ScriptFunction::Parameter parameter{need_name(), {}};
      if (take(":")) expression();  // the type
      if (take("=")) parameter.otherwise = expression();
      made.parameters.push_back(std::move(parameter));
      if (!here(")")) need(",");
    }
    if (take("->")) expression();
    made.body = block();
    file_.emplace(name, std::move(made));
  }

  std::vector<Statement> block() {
    need(":");
    need(TokenKind::newline, "the end of the line");
    need(TokenKind::indent, "an indented block");
    std::vector<Statement> statements;
    while (!here(TokenKind::dedent) && !here(TokenKind::end)) statements.push_back(statement());
    if (here(TokenKind::dedent)) advance();
    return statements;
  }

  Statement statement() {
    Statement made;
    made.line = now().line;
    if (take_word("if")) {
      made.kind = Statement::Kind::branch;
      made.value = expression();
      made.body = block();
      if (take_word("else")) made.otherwise = block();
      return made;
    }
    if (take_word("while")) {
      made.kind = Statement::Kind::repeat;
      made.value = expression();
      made.body = block();
      return made;
    }
    if (take_word("for")) {
      made.kind = Statement::Kind::iterate;
      made.targets.push_back(need_name());
      if (!take_word("in")) fail("'in'");
      made.value = expression();
      made.body = block();
      return made;
    }
    simple_statement(made);
    need(TokenKind::newline, "the end of the statement");
    return made;
  }

  void simple_statement(Statement& made) {
    if (take_word("pass")) return;
    if (take_word("return")) {
      made.kind = Statement::Kind::give;
      if (!here(TokenKind::newline)) made.value = expressions();
      return;
    }
    made.kind = Statement::Kind::evaluate;
    made.value = expressions();
    if (take(":")) expression();  // the type of a variable
    if (!take("=")) return;
    made.kind = Statement::Kind::assign;
    auto targets = std::move(made.value);
    const bool several = targets.kind == Expression::Kind::tuple;
    for (auto& target : several ? targets.items : std::vector<Expression>{targets}) {
      if (target.kind != Expression::Kind::name) {
        throw Error(ErrorCode::unsupported_model,
                    "line " + std::to_string(made.line) +
                        ": assigns to what is not a variable; a network in inference mode was "
                        "expected (model.eval() before torch.jit.script)");
      }
      made.targets.push_back(std::move(target.text));
    }
    made.unpacks = several;
    made.value = expressions();
  }

  ScriptFile file_;
};

}  // namespace

ScriptFile parse_script(std::string_view source) { return Parser(source).run(); }

}  // namespace zsq::formats
