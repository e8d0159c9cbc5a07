// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <limits>

#include "core/error.h"
#include "models/torchscript/interpreter.h"

namespace zsq::models::torchscript {
namespace {

using formats::Expression;
using Kind = Expression::Kind;

// "torch.conv2d" for the attribute conv2d of the name torch; empty for anything else.
std::string dotted(const Expression& expression) {
  if (expression.kind == Kind::name) return expression.text;
  if (expression.kind != Kind::attribute) return {};
  const auto object = dotted(expression.items[0]);
  return object.empty() ? object : object + "." + expression.text;
}

// ATen's name for a global of TorchScript: torch.conv2d, ops.aten.conv2d, ops.prim.NumToTensor.
// Empty for what is no operator of PyTorch itself.
std::string operator_of(const std::string& global) {
  for (const std::string prefix : {"torch.", "ops.aten.", "ops.prim."}) {
    const bool fits = global.starts_with(prefix);
    if (fits && global.find('.', prefix.size()) == std::string::npos) {
      return global.substr(prefix.size());
    }
  }
  return {};
}

// 12 of "CONSTANTS.c12"; of anything else a number that no constant has.
std::size_t constant_in(const std::string& global) {
  constexpr std::string_view kPrefix = "CONSTANTS.c";
  std::size_t number = std::string::npos;
  if (global.starts_with(kPrefix)) {
    std::from_chars(global.data() + kPrefix.size(), global.data() + global.size(), number);
  }
  return number;
}

bool is_global(const std::string& name) {
  return name.starts_with("torch.") || name.starts_with("ops.") || name.starts_with("__torch__.") ||
         name.starts_with("CONSTANTS.");
}

}  // namespace

aten::Value Interpreter::name(const Expression& expression, const Frame& frame) {
  const auto found = frame.variables.find(expression.text);
  if (found == frame.variables.end()) {
    throw Error(ErrorCode::bad_input, place(frame, expression.line) + ": the variable '" +
                                          expression.text + "' has no value; the code is damaged");
  }
  if (const auto* held = found->second.as<std::string>()) {
    return text(*held, frame, expression.line);
  }
  return found->second;
}

aten::Value Interpreter::evaluate_items(const std::vector<Expression>& items, Frame& frame) {
  std::vector<Value> values;
  for (const auto& item : items) values.push_back(evaluate(item, frame));
  return aten::make_list(std::move(values));
}

aten::Value Interpreter::evaluate(const Expression& expression, Frame& frame) {
  const Nested nested(*this, frame, expression.line);
  switch (expression.kind) {
    case Kind::none:
      return {};
    case Kind::boolean:
      return {expression.integer != 0};
    case Kind::integer:
      return {expression.integer};
    case Kind::real:
      return {expression.real};
    case Kind::text:
      return text(expression.text, frame, expression.line);
    case Kind::name:
      return name(expression, frame);
    case Kind::list:
    case Kind::tuple:
      return evaluate_items(expression.items, frame);
    case Kind::call:
      return evaluate_call(expression, frame);
    case Kind::subscript: {
      const auto object = evaluate(expression.items[0], frame);
      const auto index = evaluate(expression.items[1], frame);
      return program_.run(
          {"__getitem__", {{"", object}, {"", index}}, "", place(frame, expression.line)});
    }
    case Kind::attribute:
      break;
  }
  const auto global = dotted(expression);
  if (!is_global(global)) {
    return attribute(evaluate(expression.items[0], frame), expression.text, frame, expression.line);
  }
  if (global.starts_with("__torch__.")) return {Value::Callee{global}};
  if (const auto constant = constant_in(global); constant < archive_.constants.size()) {
    return tensor(archive_.constants[constant]);
  }
  fail(frame, expression.line, "'" + global + "' is not known");
}

std::optional<aten::Value> Interpreter::evaluate_builtin(const std::string& name,
                                                         const Expression& expression,
                                                         Frame& frame) {
  const auto& items = expression.items;
  if ((name == "annotate" || name == "unchecked_cast") && items.size() == 3) {
    return evaluate(items[2], frame);
  }
  if (name == "uninitialized") return Value{};
  if (name == "getattr" && items.size() == 3 && items[2].kind == Kind::text) {
    return attribute(evaluate(items[1], frame), items[2].text, frame, expression.line);
  }
  if (name == "range" && items.size() == 2) return evaluate(items[1], frame);
  if (name == "float" && items.size() == 2 && items[1].kind == Kind::text) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (items[1].text == "inf") return Value{kInfinity};
    if (items[1].text == "-inf") return Value{-kInfinity};
  }
  if (name == "ops.prim.RaiseException") {
    const bool told = items.size() > 1 && items[1].kind == Kind::text;
    fail(frame, expression.line,
         "the network refuses an input of this shape" + (told ? ": " + items[1].text : ""));
  }
  return std::nullopt;
}

aten::Value Interpreter::evaluate_call(const Expression& expression, Frame& frame) {
  const auto& callee = expression.items[0];
  const auto global = dotted(callee);
  if (auto value = evaluate_builtin(global, expression, frame)) return *value;
  const bool builtin = global == "int" || global == "float" || global == "bool" ||
                       global == "list" || global == "len";
  const auto op = builtin ? global : operator_of(global);
  if (op.empty() && global.starts_with("ops.")) {
    fail(frame, expression.line, "operator " + global + " is not known");
  }
  const bool is_method = op.empty() && callee.kind == Kind::attribute && !is_global(global);
  Value object = is_method ? evaluate(callee.items[0], frame) : Value{};
  std::vector<aten::Call::Argument> arguments;
  for (std::size_t i = 1; i < expression.items.size(); ++i) {
    arguments.push_back({expression.keywords[i - 1], evaluate(expression.items[i], frame)});
  }
  if (is_method) return call_method(object, callee.text, std::move(arguments));
  if (!op.empty()) {
    const auto node = frame.path.empty() ? op : frame.path + "." + op;
    return program_.run({op, std::move(arguments), node, place(frame, expression.line)});
  }
  const auto function = evaluate(callee, frame);
  const auto* found = function.as<Value::Callee>();
  if (!found) fail(frame, expression.line, "calls what is not a function");
  return call(find(found->function, "the function"), std::move(arguments), frame.path);
}

}  // namespace zsq::models::torchscript
