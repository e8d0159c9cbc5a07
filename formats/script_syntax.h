// SPDX-License-Identifier: Apache-2.0
// The part of Python that TorchScript archives are written in, as a syntax tree. Nothing is run
// here; models/ follows the tree to build a network.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zsq::formats {

struct Expression {
  enum class Kind {
    none,
    boolean,  // integer: 0 or 1
    integer,
    real,
    text,
    name,
    attribute,  // items: the object; text: the attribute's name
    subscript,  // items: the object and the index
    call,       // items: what is called, then the arguments
    list,
    tuple,
  };
  Kind kind = Kind::none;
  int line = 0;
  std::int64_t integer = 0;
  double real = 0;
  std::string text;
  std::vector<Expression> items;
  std::vector<std::string> keywords;  // of a call, one per argument; empty: positional
};

struct Statement {
  enum class Kind {
    assign,    // targets = value
    evaluate,  // value, for what it does
    give,      // return value
    branch,    // if value: body, else: otherwise
    repeat,    // while value: body
    iterate,   // for targets[0] in value: body
    pass,
  };
  Kind kind = Kind::pass;
  int line = 0;
  std::vector<std::string> targets;
  bool unpacks = false;  // each target takes one item of the value
  Expression value;
  std::vector<Statement> body, otherwise;
};

struct ScriptFunction {
  struct Parameter {
    std::string name;
    std::optional<Expression> otherwise;  // the default
  };
  int line = 0;
  std::vector<Parameter> parameters;
  std::vector<Statement> body;
};

// Functions of a file by name; a method is named "Class.method".
using ScriptFile = std::map<std::string, ScriptFunction>;

// Error(bad_input), with the line, for text that is not of this language; Error(unsupported_model)
// for Python that TorchScript could write, but that is not known here.
ScriptFile parse_script(std::string_view source);

}  // namespace zsq::formats
